// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>

#include <heed/ops/elementwise.hpp>

/// How scores meet what is remembered of earlier ones, L = log Σ exp(e) of these; -inf where there is nothing.
namespace heed::ops {

namespace functions {

/// e − β·L, and e itself where there is no history.
template <class T>
struct discount_by {
    T strength;

    template <class V>
    V value(V e, V L) const
    {
        return simd::select(L == -std::numeric_limits<T>::infinity(), e, e - strength * L);
    }
    template <class V>
    V slope_history(V L, V dy) const
    {
        return simd::select(L == -std::numeric_limits<T>::infinity(), simd::splat<T>(0), -strength * dy);
    }
};

/// log(exp(L − δ) + exp(e)).
template <class T>
struct fade {
    T decay;

    template <class V>
    V value(V L, V e) const
    {
        return logaddexp::value<T>(L - decay, e);
    }
    template <class V>
    V slope_history(V L, V e, V y, V dy) const
    {
        return logaddexp::slope_a<T>(L - decay, e, y, dy);
    }
    template <class V>
    V slope_scores(V L, V e, V y, V dy) const
    {
        return logaddexp::slope_b<T>(L - decay, e, y, dy);
    }
};

}  // namespace functions

/// e − strength·L, and e itself where L = -inf: both of the same shape. With strength 1 it is ops::discount.
struct discount_by_op : operation<discount_by_op> {
    template <std::size_t N>
    static void check(const shape_of_rank<N>& e, const shape_of_rank<N>& L)
    {
        require_shape("discount_by", "the history", L, e, "the shape of the scores");
    }

    template <plain_tensor E, plain_tensor H>
    auto plain(const E& e, const H& L, double strength) const
    {
        static_assert(rank_of<E> == rank_of<H>, "heed: discount_by takes two tensors of the same rank");
        using T = element_of<E>;
        check(shape_of(e), shape_of(L));
        auto y = storage_for<T, rank_of<E>>(shape_of(e));
        const functions::discount_by<T> f{static_cast<T>(strength)};
        simd::parallel_transform(
            y.size(), y.data(), [f](auto u, auto v) { return f.value(u, v); }, static_cast<const T*>(view_of(e).data),
            static_cast<const T*>(view_of(L).data));
        return y;
    }
};
inline constexpr discount_by_op discount_by{};

/// log(exp(L − decay) + exp(e)): the history grown by a step, all that was before counting exp(−decay) as much. With
/// decay 0 it is ops::logaddexp.
struct fade_op : operation<fade_op> {
    template <std::size_t N>
    static void check(const shape_of_rank<N>& L, const shape_of_rank<N>& e)
    {
        require_shape("fade", "what joins the history", e, L, "the shape of the history");
    }

    template <plain_tensor H, plain_tensor E>
    auto plain(const H& L, const E& e, double decay) const
    {
        static_assert(rank_of<E> == rank_of<H>, "heed: fade takes two tensors of the same rank");
        using T = element_of<E>;
        check(shape_of(L), shape_of(e));
        auto y = storage_for<T, rank_of<E>>(shape_of(e));
        const functions::fade<T> f{static_cast<T>(decay)};
        simd::parallel_transform(
            y.size(), y.data(), [f](auto u, auto v) { return f.value(u, v); }, static_cast<const T*>(view_of(L).data),
            static_cast<const T*>(view_of(e).data));
        return y;
    }
};
inline constexpr fade_op fade{};

/// e + w·x with one learned number w [1]; e and x have the same shape.
struct add_weighted_op : operation<add_weighted_op> {
    template <std::size_t N>
    static void check(const shape_of_rank<N>& e, const shape_of_rank<1>& w, const shape_of_rank<N>& x)
    {
        require_shape("add_weighted", "the weight", w, {1}, "one number for all");
        require_shape("add_weighted", "what is added", x, e, "the shape of the first argument");
    }

    template <plain_tensor E, plain_tensor W, plain_tensor X>
    auto plain(const E& e, const W& w, const X& x) const
    {
        static_assert(rank_of<E> == rank_of<X>, "heed: add_weighted adds tensors of the same rank");
        using T = element_of<E>;
        check(shape_of(e), shape_of(w), shape_of(x));
        auto y = storage_for<T, rank_of<E>>(shape_of(e));
        simd::parallel_transform(
            y.size(), y.data(), [by = view_of(w).data[0]](auto u, auto v) { return u + by * v; },
            static_cast<const T*>(view_of(e).data), static_cast<const T*>(view_of(x).data));
        return y;
    }
};
inline constexpr add_weighted_op add_weighted{};

}  // namespace heed::ops
