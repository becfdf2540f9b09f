// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/lanes.hpp>
#include <heed/core/tensor.hpp>
#include <heed/kernels/lookup.hpp>

/// Tables that functions of scores look numbers up in, and how their gradients are found.
///
///     [](auto e, place p, const auto& bias) { return e + bias(p.head, p.key - p.query + 16); }
///
/// A table is a tensor of any rank. Indices are whole numbers or lanes of them, and those beyond an end mean the end,
/// as relative positions beyond the longest distance do. A function may look up as often as it likes.
namespace heed {

/// A table while scores are computed: looks up a number for each lane.
template <class T, std::size_t N>
struct lane_table {
    const T* data;
    shape_of_rank<N> shape;

    /// Where the elements of these indices are: lanes of places, or a number if all indices are numbers.
    template <class... Index>
    HEED_SIMD_INLINE auto place_of(const Index&... index) const
    {
        static_assert(sizeof...(Index) == N, "heed: a table takes as many indices as it has axes");
        return place_behind(0, 0, index...);
    }
    /// The number, or the numbers, at these places of the table's memory.
    HEED_SIMD_INLINE pack<T> at(std::int32_t place) const { return pack<T>(data[place]); }
    HEED_SIMD_INLINE pack<T> at(const pack<std::int32_t>& place) const
    {
        if constexpr (std::is_arithmetic_v<T> && sizeof(T) == sizeof(float)) {
            std::size_t size = 1;
            for (const std::size_t n : shape) size *= n;
            const auto found = simd::look_up(data, static_cast<std::int32_t>(size), place.at);
            pack<T> result;
            std::memcpy(&result.at, &found, sizeof found);
            return result;
        } else {
            return detail::each_lane<T>([&](std::size_t i) { return data[place.at[i]]; });
        }
    }
    template <class... Index>
    HEED_SIMD_INLINE pack<T> operator()(const Index&... index) const
    {
        return at(place_of(index...));
    }

private:
    /// Row-major: so far ordinary numbers, and lanes from the first index on that is lanes.
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

namespace detail {

HEED_SIMD_INLINE bool same(const pack<std::int32_t>& a, const pack<std::int32_t>& b)
{
    simd::mask<float> different;
    const auto bits = a.at != b.at;
    std::memcpy(&different, &bits, sizeof bits);
    return !simd::any(different);
}

/// A table while the scores of a tile are computed, key after key.
///
/// Queries may look up far from each other, as in a table with a row for each of them. Mostly each then goes on to the
/// next number with the next key, or looks the same one up again. Then a square is read at once, as many numbers from
/// each place as there are lanes, and turned: a row of it is a register.
template <class T, std::size_t N>
struct table_of_tile : lane_table<T, N> {
    explicit table_of_tile(const lane_table<T, N>& table) : lane_table<T, N>(table), first_(-2 * length) {}

    template <class... Index>
    HEED_SIMD_INLINE pack<T> operator()(const Index&... index) const
    {
        const auto place = this->place_of(index...);
        if constexpr (reads_squares && is_lanes<std::remove_cvref_t<decltype(place)>>) {
            std::int32_t size = 1;
            for (const std::size_t n : this->shape) size *= static_cast<std::int32_t>(n);
            if (known_ == 0 && simd::near_by(size, place.at)) return this->at(place);
            const std::int32_t ahead = place.at[0] - first_.at[0];
            if (0 <= ahead && ahead <= length && same(place, first_ + ahead)) {
                if (ahead < known_) return load_lanes(square_ + ahead * length);
                read(this->data, size, place, *this);
                if (known_ > 0) return load_lanes(square_);
            }
            first_.at = place.at;
            known_ = 0;
        }
        return this->at(place);
    }

private:
    static constexpr bool reads_squares = std::is_same_v<T, float>;
    static constexpr auto length = static_cast<std::int32_t>(lane_count);

    [[gnu::noinline]] static void read(const T* data, std::int32_t size, const pack<std::int32_t> place,
                                       const table_of_tile& to)
    {
        to.known_ = 0;
        for (std::size_t i = 0; i < lane_count; ++i)
            if (place.at[i] > size - length) return;
        simd::vec<T> rows[lane_count];
        simd::unrolled<lane_count>([&](auto i) {
            const T* const from = data + place.at[std::size_t{i}];
            rows[i] = simd::load(from);
            __builtin_prefetch(from + 2 * length);
        });
        simd::transpose<T>(rows);
        simd::unrolled<lane_count>([&](auto i) { simd::store(to.square_ + i * lane_count, rows[i]); });
        to.first_.at = place.at;
        to.known_ = length;
    }

    mutable pack<std::int32_t> first_;  // places of the square's first row
    mutable std::int32_t known_ = 0;    // rows: all, or none
    mutable T square_[reads_squares ? lane_count * lane_count : 1];
};

/// The same while the derivative by what one of the lookups found is computed.
template <class T, std::size_t N>
struct table_in_question {
    const lane_table<T, N>& table;
    std::size_t asked;  // which lookup, in the order in which the function makes them
    mutable std::size_t made;
    mutable pack<std::int32_t> place;

    template <class... Index>
    HEED_SIMD_INLINE dual<T> operator()(const Index&... index) const
    {
        const auto here = table.place_of(index...);
        const bool it = made++ == asked;
        if (it) place.at = pack<std::int32_t>(here).at;
        return {table.at(here), pack<T>(it ? 1 : 0)};
    }
};

/// The lanes of x, one lane on or back; what is lost at one end comes in at the other one from `in`.
template <int step, class T, std::size_t... i>
HEED_SIMD_INLINE pack<T> lanes_moved(const pack<T>& x, const pack<T>& in, std::index_sequence<i...>)
{
    constexpr auto from = [](std::size_t lane) {
        const int at = static_cast<int>(lane) - step, n = static_cast<int>(lane_count);
        return at < 0 ? n : at >= n ? 2 * n - 1 : at;
    };
    pack<T> result;
    if constexpr (dual_element<T>) {
        result.at.value = __builtin_shufflevector(x.at.value, in.at.value, from(i)...);
        result.at.slope = __builtin_shufflevector(x.at.slope, in.at.slope, from(i)...);
    } else {
        result.at = __builtin_shufflevector(x.at, in.at, from(i)...);
    }
    return result;
}
template <int step, class T>
HEED_SIMD_INLINE pack<T> lanes_moved(const pack<T>& x, const pack<T>& in)
{
    return detail::lanes_moved<step>(x, in, std::make_index_sequence<lane_count>{});
}

/// Adds to places of a table, register after register.
///
/// A function of the distance looks up with the next key what it has looked up with this one, a lane on (or back, one
/// of the sum of both); one of the query, the same again. Then sums stay in a register, and one lane or none goes to
/// the table. Where each lane goes on to the next place, sums are kept as rows of a square, which is turned when it is
/// full.
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
    /// Adds what is still in registers.
    HEED_SIMD_INLINE void finish()
    {
        put_square();
        put(table_, place_, sum_);
        sum_.at = pack<T>(T(0)).at;
    }

private:
    static constexpr bool keeps_squares = std::is_same_v<T, float>;

    /// A lane goes to the table, the others move.
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
    // Not of *this, which would then lie in memory.
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
    /// table[place_i + r] += square[r][i] for so many rows; lanes may meet in a place.
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

/// table += what comes back to a function of scores, times ∂f/∂(what it looked up), for each lookup of f(e, where,
/// table). `each` calls a function with e, where, and what comes back, for each register of scores; lanes to which
/// nothing comes back may have any slope.
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

template <std::size_t N>
void require_numbers(const shape_of_rank<N>& shape, std::size_t size)
{
    if (size == 0) throw shape_error("looked_up: the table is empty, " + shape_text(shape) + "; give it a number");
}

}  // namespace detail

/// Numbers that a mask or a function of scores looks up, and that do not learn: the document of each position, for one.
///
///     const auto document = looked_up(ids);         // a tensor or a std::vector, which has to live as long
///     attend(memory, queries, causal{} & [=](place p) { return document(p.query) == document(p.key); });
///
/// Throws shape_error if it is empty: there is no end that indices beyond it could mean.
template <plain_tensor X>
auto looked_up(const X& x)
{
    const auto view = view_of(x);
    detail::require_numbers(view.shape, view.size());
    return lane_table<element_of<X>, rank_of<X>>{view.data, view.shape};
}
template <class T>
lane_table<T, 1> looked_up(const std::vector<T>& x)
{
    detail::require_numbers(shape_of_rank<1>{x.size()}, x.size());
    return {x.data(), {x.size()}};
}

/// No table.
struct no_table {};

}  // namespace heed
