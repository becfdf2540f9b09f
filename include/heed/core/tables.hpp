// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heed/core/lanes.hpp>
#include <heed/core/tensor.hpp>

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

    /// Where the elements of these indices are.
    template <class... Index>
    HEED_SIMD_INLINE pack<std::int32_t> place_of(const Index&... index) const
    {
        static_assert(sizeof...(Index) == N, "heed: a table takes as many indices as it has axes");
        pack<std::int32_t> at(0);
        std::size_t axis = 0;
        (add(at, shape[axis++], pack<std::int32_t>(index)), ...);
        return at;
    }
    HEED_SIMD_INLINE pack<T> at(const pack<std::int32_t>& place) const
    {
        return detail::each_lane<T>([&](std::size_t i) { return data[place.at[i]]; });
    }
    template <class... Index>
    HEED_SIMD_INLINE pack<T> operator()(const Index&... index) const
    {
        return at(place_of(index...));
    }

private:
    HEED_SIMD_INLINE static void add(pack<std::int32_t>& at, std::size_t extent, const pack<std::int32_t>& index)
    {
        const auto n = static_cast<std::int32_t>(extent);
        at = at * n + min(max(index, 0), n - 1);
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
    dual<T> operator()(const Index&... index) const
    {
        const pack<std::int32_t> here = table.place_of(index...);
        const bool it = made++ == asked;
        if (it) place = here;
        return {table.at(here), pack<T>(it ? 1 : 0)};
    }
};

/// use(places in the table, ∂f/∂(what is there)) for each lookup of f(e, where, table).
template <class T, std::size_t N>
void each_lookup(const auto& f, const pack<T>& e, const auto& where, const lane_table<T, N>& table, const auto& use)
{
    for (std::size_t k = 0;; ++k) {
        const table_in_question<T, N> asks{table, k, 0, {}};
        const dual<T> y(f(dual<T>(e, pack<T>(0)), where, asks));
        if (k >= asks.made) return;
        use(asks.place, y.slope);
        if (k + 1 == asks.made) return;
    }
}

/// table += what comes back to each lane, times its slope. Lanes to which nothing comes back may have any slope.
template <class T>
void add_to_table(T* d_table, const pack<std::int32_t>& place, const pack<T>& by, const pack<T>& slope)
{
    for (std::size_t i = 0; i < lane_count; ++i)
        if (by.at[i] != T(0)) d_table[place.at[i]] += by.at[i] * slope.at[i];
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
