// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <string>

#include <heed/kernels/simd.hpp>
#include <heed/ops/operation.hpp>

/// y_i = f(x_i) and y_i = f(a_i, b_i), and the same with b repeated for every position.
///
/// Each function states its value and its derivatives side by side, on vectors of lanes.
namespace heed::ops {

namespace functions {

// One argument: value(x), and slope(x, y, dy) = ∂y/∂x · dy.
struct tanh {
    template <class T, class V>
    static V value(V x)
    {
        return simd::tanh(x);
    }
    template <class T, class V>
    static V slope(V, V y, V dy)
    {
        return dy * (1 - y * y);
    }
};
struct sigmoid {
    template <class T, class V>
    static V value(V x)
    {
        return simd::sigmoid(x);
    }
    template <class T, class V>
    static V slope(V, V y, V dy)
    {
        return dy * y * (1 - y);
    }
};
struct exp {
    template <class T, class V>
    static V value(V x)
    {
        return simd::exp(x);
    }
    template <class T, class V>
    static V slope(V, V y, V dy)
    {
        return dy * y;
    }
};
struct log {
    template <class T, class V>
    static V value(V x)
    {
        return simd::log(x);
    }
    template <class T, class V>
    static V slope(V x, V, V dy)
    {
        return dy / x;
    }
};
struct relu {
    template <class T, class V>
    static V value(V x)
    {
        return simd::select(x > T(0), x, simd::splat<T>(0));
    }
    template <class T, class V>
    static V slope(V x, V, V dy)
    {
        return simd::select(x > T(0), dy, simd::splat<T>(0));
    }
};
struct square {
    template <class T, class V>
    static V value(V x)
    {
        return x * x;
    }
    template <class T, class V>
    static V slope(V x, V, V dy)
    {
        return dy * (x + x);
    }
};

// Two arguments: value(a, b), and slope_a, slope_b(a, b, y, dy).
struct add {
    template <class T, class V>
    static V value(V a, V b)
    {
        return a + b;
    }
    template <class T, class V>
    static V slope_a(V, V, V, V dy)
    {
        return dy;
    }
    template <class T, class V>
    static V slope_b(V, V, V, V dy)
    {
        return dy;
    }
};
/// tanh(a + b) in one pass: the hidden layer of additive scores, the largest temporary of a step.
struct tanh_of_sum {
    template <class T, class V>
    static V value(V a, V b)
    {
        return simd::tanh(a + b);
    }
    template <class T, class V>
    static V slope_a(V, V, V y, V dy)
    {
        return dy * (1 - y * y);
    }
    template <class T, class V>
    static V slope_b(V, V, V y, V dy)
    {
        return dy * (1 - y * y);
    }
};
struct subtract {
    template <class T, class V>
    static V value(V a, V b)
    {
        return a - b;
    }
    template <class T, class V>
    static V slope_a(V, V, V, V dy)
    {
        return dy;
    }
    template <class T, class V>
    static V slope_b(V, V, V, V dy)
    {
        return -dy;
    }
};
struct multiply {
    template <class T, class V>
    static V value(V a, V b)
    {
        return a * b;
    }
    template <class T, class V>
    static V slope_a(V, V b, V, V dy)
    {
        return dy * b;
    }
    template <class T, class V>
    static V slope_b(V a, V, V, V dy)
    {
        return dy * a;
    }
};

/// log(eᵃ + eᵇ), exact where one side is -inf. Every exponent is <= 0.
struct logaddexp {
    template <class T, class V>
    static V value(V a, V b)
    {
        const V high = simd::select(a > b, a, b), low = simd::select(a > b, b, a);
        const V sum = high + simd::log1p(simd::exp(low - high));
        const auto both = (a == b) & (high == -std::numeric_limits<T>::infinity());  // -inf - -inf is NaN
        return simd::select(both, high, sum);
    }
    template <class T, class V>
    static V slope_a(V a, V, V y, V dy)
    {
        return share<T>(a, y, dy);
    }
    template <class T, class V>
    static V slope_b(V, V b, V y, V dy)
    {
        return share<T>(b, y, dy);
    }

private:
    template <class T, class V>
    static V share(V part, V y, V dy)
    {
        const auto nothing = part == -std::numeric_limits<T>::infinity();
        return simd::select(nothing, simd::splat<T>(0), dy * simd::exp(part - y));
    }
};

/// e − L, and e itself where there is no history yet (L = -inf): the modulation of SPEC N3 in the log domain.
struct discount {
    template <class T, class V>
    static V value(V e, V L)
    {
        return simd::select(L == -std::numeric_limits<T>::infinity(), e, e - L);
    }
    template <class T, class V>
    static V slope_a(V, V, V, V dy)
    {
        return dy;
    }
    template <class T, class V>
    static V slope_b(V, V L, V, V dy)
    {
        return simd::select(L == -std::numeric_limits<T>::infinity(), simd::splat<T>(0), -dy);
    }
};

}  // namespace functions

/// y = f(x), elementwise.
template <class F>
struct unary : operation<unary<F>> {
    template <plain_tensor X>
    auto plain(const X& x) const
    {
        using T = element_of<X>;
        auto y = storage_for<T, rank_of<X>>(shape_of(x));
        const auto from = view_of(x);
        simd::parallel_transform(
            from.size(), y.data(), [](auto v) { return F::template value<T>(v); }, static_cast<const T*>(from.data));
        return y;
    }
};

/// y = f(a, b), elementwise; a and b have the same shape.
template <class F>
struct binary : operation<binary<F>> {
    const char* name;

    constexpr explicit binary(const char* word) : name(word) {}

    template <std::size_t N>
    void check(const shape_of_rank<N>& a, const shape_of_rank<N>& b) const
    {
        require_shape(name, "the second argument", b, a, "the shape of the first");
    }

    template <plain_tensor A, plain_tensor B>
    auto plain(const A& a, const B& b) const
    {
        static_assert(rank_of<A> == rank_of<B>, "heed: an elementwise operation takes two tensors of the same rank");
        using T = element_of<A>;
        check(shape_of(a), shape_of(b));
        auto y = storage_for<T, rank_of<A>>(shape_of(a));
        simd::parallel_transform(
            view_of(a).size(), y.data(), [](auto u, auto v) { return F::template value<T>(u, v); },
            static_cast<const T*>(view_of(a).data), static_cast<const T*>(view_of(b).data));
        return y;
    }
};

/// y[b,t,:] = f(a[b,t,:], b[b,:]): the second argument [B,A] meets each position of the first [B,T,A].
template <class F>
struct binary_each : operation<binary_each<F>> {
    const char* name;

    constexpr explicit binary_each(const char* word) : name(word) {}

    void check(const shape_of_rank<3>& a, const shape_of_rank<2>& b) const
    {
        require_shape(name, "the second argument", b, shape_of_rank<2>{a[0], a[2]},
                      "one row for each row of the first, which is ", a);
    }

    template <plain_tensor A, plain_tensor B>
    auto plain(const A& a, const B& b) const
    {
        static_assert(rank_of<A> == 3 && rank_of<B> == 2, "heed: an ..._each operation takes [B,T,A] and [B,A]");
        using T = element_of<A>;
        check(shape_of(a), shape_of(b));
        auto y = storage_for<T, 3>(shape_of(a));
        const auto [B_, T_, A_] = shape_of(a);
        const T* from = view_of(a).data;
        const T* row = view_of(b).data;
        parallel_for(B_, 1 + 65536 / (T_ * A_ + 1),
                     [&, T_ = T_, A_ = A_](std::size_t first, std::size_t last, std::size_t) {
                         for (std::size_t i = first * T_; i < last * T_; ++i) {
                             simd::transform(
                                 A_, y.data() + i * A_, [](auto u, auto v) { return F::template value<T>(u, v); },
                                 from + i * A_, row + i / T_ * A_);
                         }
                     });
        return y;
    }
};

inline constexpr unary<functions::tanh> tanh{};
inline constexpr unary<functions::sigmoid> sigmoid{};
inline constexpr unary<functions::exp> exp{};
inline constexpr unary<functions::log> log{};
inline constexpr unary<functions::relu> relu{};
inline constexpr unary<functions::square> square{};

inline constexpr binary<functions::add> add{"add"};
inline constexpr binary<functions::subtract> subtract{"subtract"};
inline constexpr binary<functions::multiply> multiply{"multiply"};
inline constexpr binary<functions::logaddexp> logaddexp{"logaddexp"};
inline constexpr binary<functions::discount> discount{"discount"};

inline constexpr binary_each<functions::add> add_each{"add_each"};
inline constexpr binary_each<functions::tanh_of_sum> tanh_of_sum_each{"tanh_of_sum_each"};
inline constexpr binary_each<functions::subtract> subtract_each{"subtract_each"};
inline constexpr binary_each<functions::multiply> multiply_each{"multiply_each"};

/// y = factor · x. The factor is a double for every element type: a policy's text does not depend on it.
struct scale_op : operation<scale_op> {
    template <plain_tensor X>
    auto plain(const X& x, double factor) const
    {
        using T = element_of<X>;
        auto y = storage_for<T, rank_of<X>>(shape_of(x));
        simd::parallel_transform(
            view_of(x).size(), y.data(), [f = static_cast<T>(factor)](auto v) { return v * f; },
            static_cast<const T*>(view_of(x).data));
        return y;
    }
};
inline constexpr scale_op scale{};

}  // namespace heed::ops
