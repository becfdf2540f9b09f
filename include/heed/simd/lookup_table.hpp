// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/diagnostics.hpp>
#include <heed/core/tensor.hpp>
#include <heed/simd/dual_pack.hpp>
#include <heed/simd/lookup.hpp>
#include <heed/simd/pack.hpp>

/// Tables for functions of scores, and their gradients.
///
///     [](auto e, score_index p, const auto& bias) { return e + bias(p.head, p.key - p.query + 16); }
///
/// A table is a tensor of any rank. Indices are whole numbers or lanes of whole numbers; they are clamped to the table.
namespace heed::inline HEED_TARGET {

namespace detail {

/// Reinterprets the bits of a register of floats or integers as lanes.
template <class T>
HEED_SIMD_INLINE pack<T> with_bits(const auto& bits)
{
    pack<T> result;
    std::memcpy(&result.at, &bits, sizeof bits);
    return result;
}

/// A register of table entries from this address on, of 4 bytes or of one.
template <std::size_t width>
HEED_SIMD_INLINE simd::vec<float> numbers_from_table(const char* from)
{
    simd::vec<float> numbers;
    if constexpr (width == 4) {
        std::memcpy(&numbers, from, sizeof numbers);
    } else {
        const simd::mask<float> wide = simd::bytes_from(reinterpret_cast<const std::uint8_t*>(from));
        std::memcpy(&numbers, &wide, sizeof numbers);
    }
    return numbers;
}

/// Fills a slot with table entries at first + r + i · per_lane, for lane i and row r. `table` and `by` identify them,
/// see column_of. If each query has its own row of the table, a square is read and transposed, and serves lane_count
/// keys: `size` is then that of the table, else 0.
template <std::size_t width = 4>
[[gnu::noinline]] void read_columns(lane_memo::slot& slot, float* square, std::uint64_t table, std::uint64_t by,
                                    std::int32_t size, std::int32_t first)
{
    constexpr auto length = static_cast<std::int32_t>(lane_count);
    const auto* const bytes = reinterpret_cast<const char*>(static_cast<std::uintptr_t>(table & ~std::uint64_t{1}));
    const auto per_lane = static_cast<std::int32_t>(static_cast<std::uint32_t>(by));
    const std::int64_t last = first + std::int64_t{per_lane} * (length - 1);
    const auto row = [&](std::size_t i) {
        return bytes + std::ptrdiff_t{width} * (first + std::ptrdiff_t{per_lane} * static_cast<std::ptrdiff_t>(i));
    };
    slot = {lane_memo::no_function, table, by, first, 1, slot.numbers};
    if (std::max<std::int64_t>(first, last) > size - length) {
        std::fill_n(square, lane_count, 0.0F);
        for (std::size_t i = 0; i < lane_count; ++i) std::memcpy(square + i, row(i), width);
        return;
    }
    slot.count = length;
    simd::vec<float> rows[lane_count];
    simd::unrolled<lane_count>([&](auto i) {
        rows[i] = numbers_from_table<width>(row(i));
        __builtin_prefetch(row(i) + 2 * simd::register_bytes);
    });
    simd::transpose<float>(rows);
    simd::unrolled<lane_count>([&](auto i) { simd::store(square + i * lane_count, rows[i]); });
}
/// The table entries at these offsets. Entries that all keys share (`still`) are identified by their first offset and
/// by an odd address, at which no table begins.
template <bool still, std::size_t width = 4>
HEED_SIMD_INLINE simd::vec<float> column_of(const void* data, std::int32_t size, const strided_index& place,
                                            std::size_t k)
{
    lane_memo::slot& slot = place.call->memo.at(k);
    float* const square = place.call->memo.square_at(k);
    const auto first = static_cast<std::uint32_t>(place.first);
    const std::uint64_t table = reinterpret_cast<std::uintptr_t>(data) + (still ? 1 : 0);
    const std::uint64_t by = std::uint64_t{still ? first : 0} << 32 | static_cast<std::uint32_t>(place.per_lane);
    std::uint32_t ahead = still ? 0 : first - static_cast<std::uint32_t>(slot.first);
    if (slot.table != table || slot.by != by || (!still && ahead >= static_cast<std::uint32_t>(slot.count)))
        [[unlikely]] {
        read_columns<width>(slot, square, table, by, !still && place.per_key == 1 ? size : 0, place.first);
        ahead = 0;
    }
    return simd::load(square + ahead * lane_count);
}

}  // namespace detail

/// A table during the computation of scores: looks up a number for each lane.
template <class T, std::size_t N>
struct lane_table {
    const T* data;
    shape_of_rank<N> shape;

    HEED_SIMD_INLINE std::int32_t size() const
    {
        return static_cast<std::int32_t>(tensor_view<const T, N>{data, shape}.size());
    }
    /// The offset of the element with these indices: lanes of offsets, or a number if all indices are numbers.
    template <class... Index>
    HEED_SIMD_INLINE auto diagonal_of(const Index&... index) const
    {
        static_assert(sizeof...(Index) == N, "heed: a table takes one index for each axis");
        return place_behind(0, 0, index...);
    }
    /// The number, or the numbers, at these offsets in the table's memory.
    HEED_SIMD_INLINE pack<T> at(std::int32_t place) const { return pack<T>(data[place]); }
    HEED_SIMD_INLINE pack<T> at(const pack<std::int32_t>& place) const
    {
        if constexpr (std::is_arithmetic_v<T> && sizeof(T) == sizeof(float)) {
            return detail::with_bits<T>(simd::look_up(data, size(), place.at));
        } else {
            return detail::each_lane<T>([&](std::size_t i) { return data[place.at[i]]; });
        }
    }
    template <class... Index>
    HEED_SIMD_INLINE pack<T> operator()(const Index&... index) const
    {
        if constexpr ((detail::whole_lanes<Index> || ...) && (detail::whole_number<Index> && ...)) {
            detail::strided_index place = (... + detail::steps_of(index));  // are the steps known?
            if (place.known) {
                std::size_t slot = lane_memo::slots;
                if constexpr (has_bits_of_float)
                    if (place.call != nullptr) slot = place.call->next++;
                const bool lies_inside = inside(place, index...);
                if constexpr (has_bits_of_float && N > 1) {
                    if (place.per_key == 0 && place.per_lane != 0 && slot < lane_memo::slots && lies_inside)
                        return detail::with_bits<T>(detail::column_of<true>(data, size(), place, slot));
                }
                if (lies_inside) return along(place, slot);
                if (inside_at_ends(place, index...)) return along(place, slot);
                return beside_ends(*this, {detail::steps_of(index).first...}, {detail::steps_of(index).per_lane...});
            }
        }
        return at(diagonal_of(index...));
    }

private:
    using lane_memo = detail::lane_memo;
    static constexpr auto last_lane = static_cast<std::int64_t>(lane_count) - 1;
    static constexpr bool has_bits_of_float = std::is_arithmetic_v<T> && sizeof(T) == sizeof(float);

    /// For lanes of which some are beyond an end.
    [[gnu::noinline]] static pack<T> beside_ends(const lane_table table, const std::array<std::int32_t, N> first,
                                                 const std::array<std::int32_t, N> per_lane)
    {
        pack<std::int32_t> far(0);
        for (std::size_t axis = 0; axis < N; ++axis) {
            const auto n = static_cast<std::int32_t>(table.shape[axis]);
            pack<std::int32_t> inside;
            inside.at = simd::within(n, detail::stepping({true, first[axis], per_lane[axis]}).at);
            far.at = far.at * n + inside.at;
        }
        return table.at(far);
    }

    HEED_SIMD_INLINE static std::int64_t span_of(const detail::strided_index& x)
    {
        return (x.per_lane < 0 ? -std::int64_t{x.per_lane} : std::int64_t{x.per_lane}) * last_lane;
    }
    HEED_SIMD_INLINE static bool lies_inside(const detail::strided_index& x, std::int32_t n)
    {
        const auto firsts = static_cast<std::uint32_t>(std::max<std::int64_t>(n - span_of(x), 0));
        return static_cast<std::uint32_t>(x.lowest()) < firsts;
    }

    /// Computes the steps of the offsets of these indices; returns false if a lane is beyond an end and the lanes
    /// differ. Without branches: everything except the test of the key is invariant in a tile.
    template <class... Index>
    HEED_SIMD_INLINE bool inside(detail::strided_index& place, const Index&... index) const
    {
        return steps_inside(
            place,
            [](detail::strided_index & x, std::int32_t n) __attribute__((always_inline)) { return lies_inside(x, n); },
            index...);
    }
    /// As `inside`, if for some keys all lanes may be beyond one end.
    template <class... Index>
    HEED_SIMD_INLINE bool inside_at_ends(detail::strided_index& place, const Index&... index) const
    {
        if (!(... || moves(detail::steps_of(index)))) return false;
        return steps_inside(
            place, [](detail::strided_index & x, std::int32_t n) __attribute__((always_inline)) {
                if (!moves(x)) return lies_inside(x, n);
                // Lanes wrap around at the maximum: both ends have to be on one side.
                const std::int64_t span = span_of(x);
                const std::int32_t low = x.lowest(), high = x.plus(low, static_cast<std::int32_t>(span));
                const bool inside = lies_inside(x, n), below = (low & high) < 0, above = std::min(low, high) >= n,
                           same = below || above;
                x.first = below ? 0 : above ? n - 1 : x.first;
                x.per_lane = same ? 0 : x.per_lane;
                x.per_key = same ? 0 : x.per_key;
                return inside || (same && span < (std::int64_t{1} << 30));
            },
            index...);
    }
    HEED_SIMD_INLINE static bool moves(const detail::strided_index& x) { return x.per_lane != 0 && x.per_key != 0; }

    template <class... Index>
    HEED_SIMD_INLINE bool steps_inside(detail::strided_index& place, const auto& within, const Index&... index) const
    {
        detail::lane_memo::call* const call = place.call;
        unsigned all = 1;
        std::size_t axis = 0;
        place = {true};
        const auto next = [&](detail::strided_index x) __attribute__((always_inline))
        {
            const auto n = static_cast<std::int32_t>(shape[axis++]);
            if (x.per_lane == 0) {
                x.first = std::clamp(x.first, 0, n - 1);
            } else {
                all &= static_cast<unsigned>(within(x, n));
            }
            place = place * n + x;
        };
        (next(detail::steps_of(index)), ...);
        place.call = call;
        return all != 0;
    }

    HEED_SIMD_INLINE pack<T> along(const detail::strided_index& place, [[maybe_unused]] std::size_t slot) const
    {
        if (place.per_lane == 0) return pack<T>(data[place.first]);
        if (place.per_lane == 1) return detail::load_lanes(data + place.first);
        if (place.per_lane == -1) return detail::reversed(detail::load_lanes(data + place.lowest()));
        if constexpr (has_bits_of_float) {
            if (slot < lane_memo::slots) {
                return detail::with_bits<T>(place.per_key == 0 ? detail::column_of<true>(data, size(), place, slot)
                                                               : detail::column_of<false>(data, size(), place, slot));
            }
        }
        return strided(data + place.first, place.per_lane);
    }
    [[gnu::noinline]] static pack<T> strided(const T* from, std::ptrdiff_t per_lane)
    {
        return detail::each_lane<T>([&](std::size_t i) { return from[static_cast<std::ptrdiff_t>(i) * per_lane]; });
    }

    /// Row-major: the offset is a number up to the first index that is lanes, and lanes from there on.
    template <class So, class Index, class... Rest>
    HEED_SIMD_INLINE auto place_behind(const So& far, std::size_t axis, const Index& index, const Rest&... rest) const
    {
        const auto n = static_cast<std::int32_t>(shape[axis]);
        const auto next = [&] {
            if constexpr (std::is_arithmetic_v<Index>) {
                return far * n + std::min(std::max(static_cast<std::int32_t>(index), 0), n - 1);
            } else {
                pack<std::int32_t> inside;
                inside.at = simd::within(n, pack<std::int32_t>(index).at);
                return far * n + inside;
            }
        }();
        if constexpr (sizeof...(Rest) == 0) {
            return next;
        } else {
            return place_behind(next, axis + 1, rest...);
        }
    }
};

/// Constant fractions for scores of any precision: they act as indices of scores, like 0.1 * p.key.
template <class T, std::size_t N>
struct lane_constants {
    lane_table<T, N> table;

    template <class... Index>
    HEED_SIMD_INLINE pack<place_number> operator()(const Index&... index) const
    {
        return pack<place_number>(table(index...));
    }
};
template <class T, std::size_t N>
lane_constants(lane_table<T, N>) -> lane_constants<T, N>;

namespace detail {

HEED_SIMD_INLINE bool same(const pack<std::int32_t>& a, const pack<std::int32_t>& b)
{
    simd::mask<float> different;
    const auto bits = a.at != b.at;
    std::memcpy(&different, &bits, sizeof bits);
    return !simd::any(different);
}

/// A table during the computation of the derivative with respect to the result of one lookup.
template <class T, std::size_t N>
struct table_in_question {
    const lane_table<T, N>& table;
    std::size_t asked;  // the index of that lookup, in the order of the function's calls
    mutable std::size_t made;
    mutable pack<std::int32_t> place;

    template <class... Index>
    HEED_SIMD_INLINE dual<T> operator()(const Index&... index) const
    {
        const auto here = table.diagonal_of(index...);
        const bool it = made++ == asked;
        if (it) place.at = pack<std::int32_t>(here).at;
        return {table.at(here), pack<T>(it ? 1 : 0)};
    }
};

template <int step>
constexpr int lane_before(std::size_t lane)
{
    constexpr int n = static_cast<int>(lane_count);
    const int at = static_cast<int>(lane) - step;
    return at < 0 ? n : at >= n ? 2 * n - 1 : at;
}
/// The lanes of x shifted by one in either direction; the lane that becomes free is filled from `in`.
template <int step, class T>
HEED_SIMD_INLINE pack<T> lanes_moved(const pack<T>& x, const pack<T>& in)
{
    return detail::shuffled<lane_before<step>>(x, in);
}

/// Accumulates into offsets of a table, register by register. From key to key, a function of the distance looks up the
/// same numbers shifted by a lane, and one of the query the same numbers again: sums stay in a register, and at most
/// one lane is written to the table. If each lane moves to the next offset, sums are rows of a square, which is
/// transposed when it is full.
template <class T>
class table_sums {
public:
    /// `square`: lane_count² numbers, for floats.
    table_sums(T* table, T* square) : table_(table), square_(square), place_(0), first_(0), sum_(T(0)) {}

    HEED_SIMD_INLINE void add(const pack<std::int32_t>& place, const pack<T>& x)
    {
        if (same(place, place_)) {
            sum_.at = (sum_ + x).at;
            return;
        }
        if (same(place, lanes_moved<1>(place_, place))) {
            move<1>(x);
        } else if (keeps_squares && same(place, place_ + 1)) {
            if (rows_ == 0) first_.at = place_.at;
            store_lanes(square_ + rows_ * lane_count, sum_);
            if (++rows_ == lane_count) put_square();
            sum_.at = x.at;
        } else if (same(place, lanes_moved<-1>(place_, place))) {
            move<-1>(x);
        } else {
            put_square();
            put(table_, place_, sum_);
            sum_.at = x.at;
        }
        place_.at = place.at;
    }
    /// Adds the sums that are still in registers.
    HEED_SIMD_INLINE void finish()
    {
        put_square();
        put(table_, place_, sum_);
        sum_.at = pack<T>(T(0)).at;
    }

private:
    static constexpr bool keeps_squares = std::is_same_v<T, float>;

    /// Writes a lane to the table, and shifts the others.
    template <int step>
    HEED_SIMD_INLINE void move(const pack<T>& x)
    {
        constexpr std::size_t last = step == 1 ? lane_count - 1 : 0;
        put_square();
        const auto at = place_.at;
        const auto sum = sum_.at;
        table_[at[last]] += sum[last];
        sum_.at = (lanes_moved<step>(sum_, pack<T>(T(0))) + x).at;
    }
    HEED_SIMD_INLINE void put_square()
    {
        if constexpr (keeps_squares) {
            if (rows_ > 0) put_turned(table_, first_, square_, rows_);
            rows_ = 0;
        }
    }
    // Not of *this, which would then be in memory.
    [[gnu::noinline]] static void put(T* table, const pack<std::int32_t> place, const pack<T> x)
    {
        T each[lane_count];
        store_lanes(each, x);
        if (same(place, pack<std::int32_t>(place.at[0]))) {
            simd::vec<T> sum = simd::load(each);
            for (std::size_t i = simd::lanes<T>; i < lane_count; i += simd::lanes<T>) sum += simd::load(each + i);
            table[place.at[0]] += simd::sum(sum);
        } else {
            for (std::size_t i = 0; i < lane_count; ++i) table[place.at[i]] += each[i];
        }
    }
    /// table[place_i + r] += square[r][i] for this many rows; lanes may have equal offsets.
    [[gnu::noinline]] static void put_turned(T* table, const pack<std::int32_t> place, const T* square,
                                             std::size_t rows)
    {
        simd::vec<T> part[lane_count];
        for (std::size_t r = 0; r < lane_count; ++r)
            part[r] = r < rows ? simd::load(square + r * lane_count) : simd::vec<T>{};
        simd::transpose<T>(part);
        const auto add = [rows](T* to, const simd::vec<T>& sums) {
            simd::store_first(to, simd::load_first(to, rows) + sums, rows);
        };
        if (same(place, pack<std::int32_t>(place.at[0]))) {  // a number for each key
            for (std::size_t i = 1; i < lane_count; ++i) part[0] += part[i];
            add(table + place.at[0], part[0]);
        } else {
            for (std::size_t i = 0; i < lane_count; ++i) add(table + place.at[i], part[i]);
        }
    }

    T *table_, *square_;
    std::size_t rows_ = 0;  // of the square
    pack<std::int32_t> place_, first_;
    pack<T> sum_;
};

/// table += the gradient of a function of scores, times ∂f/∂(table entry), for each lookup of f(e, where, table).
/// `each` calls a function with e, where and the gradient, for each register of scores; where the gradient is 0, the
/// slope is ignored.
template <class T, std::size_t N>
[[gnu::flatten]] void add_to_table(const auto& f, const lane_table<T, N>& table, T* d_table, const auto& each)
{
    T square[std::is_same_v<T, float> ? lane_count * lane_count : 1];
    std::size_t made = 0;
    for (std::size_t k = 0; k == 0 || k < made; ++k) {
        table_sums<T> sums(d_table, square);
        each([&](const pack<T>& e, const auto& where, const pack<T>& by) __attribute__((always_inline)) {
            const table_in_question<T, N> asks{table, k, 0, pack<std::int32_t>(0)};
            const dual<T> y(f(dual<T>(e, pack<T>(0)), where, asks));
            made = std::max(made, asks.made);
            if (k < asks.made) sums.add(asks.place, select(by == T(0), T(0), by * y.slope));
        });
        sums.finish();
    }
}

}  // namespace detail

/// Constant numbers for masks and functions of scores, such as the document of each position.
///
///     const auto document = looked_up(ids);         // a tensor or a std::vector, which must outlive it
///     attend(memory, queries, causal{} & [=](score_index p) { return document(p.query) == document(p.key); });
///
/// A table of floats narrows no score in double, and one of doubles does not make a kernel of floats slow. Throws
/// shape_error if it is empty. A temporary that owns its numbers is rejected at compile time.
template <class X>
    requires(plain_tensor<X> || detail::is_vector<std::remove_cvref_t<X>>)
auto looked_up(X&& x)
{
    static_assert(!detail::dies_with_its_numbers<X>, HEED_SAYS_TEMPORARY);
    const auto table = [&x] {
        if constexpr (plain_tensor<X>) {
            const auto view = view_of(x);
            return lane_table<element_of<X>, rank_of<X>>{view.data, view.shape};
        } else {
            return lane_table<typename std::remove_cvref_t<X>::value_type, 1>{x.data(), {x.size()}};
        }
    }();
    if (table.size() == 0)
        throw shape_error("looked_up: the table is empty, " + shape_text(table.shape) + "; give it a number");
    if constexpr (std::floating_point<std::remove_cvref_t<decltype(*table.data)>>) {
        return lane_constants{table};
    } else {
        return table;
    }
}

/// No table.
struct no_table {};

}  // namespace heed::inline HEED_TARGET
