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

/// The lanes of x, one lane on; its last one is lost, and the first one is that of `first`.
template <class T, std::size_t... i>
HEED_SIMD_INLINE pack<T> one_lane_on(const pack<T>& x, const pack<T>& first, std::index_sequence<i...>)
{
    constexpr auto from = [](std::size_t lane) { return static_cast<int>(lane == 0 ? lane_count : lane - 1); };
    pack<T> result;
    if constexpr (dual_element<T>) {
        result.at.value = __builtin_shufflevector(x.at.value, first.at.value, from(i)...);
        result.at.slope = __builtin_shufflevector(x.at.slope, first.at.slope, from(i)...);
    } else {
        result.at = __builtin_shufflevector(x.at, first.at, from(i)...);
    }
    return result;
}
template <class T>
HEED_SIMD_INLINE pack<T> one_lane_on(const pack<T>& x, const pack<T>& first)
{
    return detail::one_lane_on(x, first, std::make_index_sequence<lane_count>{});
}

/// Adds to places of a table, register after register.
///
/// A function of the distance looks up with the next key what it has looked up with this one, a lane on; one of the
/// query, the same again. Then sums stay in a register, and one lane or none goes to the table.
template <class T>
class table_sums {
public:
    explicit table_sums(T* table) : table_(table), place_(0), sum_(T(0)) {}

    HEED_SIMD_INLINE void add(const pack<std::int32_t>& place, const pack<T>& x)
    {
        if (same(place, place_)) {
            sum_.at = (sum_ + x).at;
            return;
        }
        if (same(place, one_lane_on(place_, place))) {
            const auto at = place_.at;
            const auto sum = sum_.at;
            table_[at[lane_count - 1]] += sum[lane_count - 1];
            sum_.at = (one_lane_on(sum_, pack<T>(T(0))) + x).at;
        } else {
            put(table_, place_, sum_);
            sum_.at = x.at;
        }
        place_.at = place.at;
    }
    /// Adds what is still in the register.
    HEED_SIMD_INLINE void finish()
    {
        put(table_, place_, sum_);
        sum_.at = pack<T>(T(0)).at;
    }

private:
    HEED_SIMD_INLINE static bool same(const pack<std::int32_t>& a, const pack<std::int32_t>& b)
    {
        simd::mask<float> different;
        const auto bits = a.at != b.at;
        std::memcpy(&different, &bits, sizeof bits);
        return !simd::any(different);
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

    T* table_;
    pack<std::int32_t> place_;
    pack<T> sum_;
};

/// table += what comes back to a function of scores, times ∂f/∂(what it looked up), for each lookup of f(e, where,
/// table). `each` calls a function with e, where, and what comes back, for each register of scores; lanes to which
/// nothing comes back may have any slope.
template <class T, std::size_t N>
HEED_SIMD_INLINE void add_to_table(const auto& f, const lane_table<T, N>& table, T* d_table, const auto& each)
{
    std::size_t made = 0;
    for (std::size_t k = 0; k == 0 || k < made; ++k) {
        table_sums<T> sums(d_table);
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
