// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include <heed/core/compiled.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/ops/broadcast.hpp>
#include <heed/ops/rows.hpp>
#include <heed/simd/simd.hpp>

/// y_i = f(x_i) and y_i = f(a_i, b_i), optionally with b repeated over rows, columns or positions.
///
/// Each function defines its value and its derivatives together, on SIMD registers. The equations are given with the
/// operations, at the end of this file.
namespace heed::inline HEED_TARGET::ops {

namespace functions {

/// The score of masked positions.
inline constexpr float none = -std::numeric_limits<float>::infinity();

/// The constant c in all lanes.
inline auto constant(auto like, double c)
{
    return simd::splat(static_cast<std::remove_cvref_t<decltype(like[0])>>(c));
}

// One argument: value(x), and slope(x, y, dy) = ∂y/∂x · dy.

/// tanh(x)
struct tanh {
    static auto value(auto x) { return simd::tanh(x); }
    static auto slope(auto, auto y, auto dy) { return dy * (1 - y * y); }
};
/// σ(x) = 1 / (1 + exp(−x))
struct sigmoid {
    static auto value(auto x) { return simd::sigmoid(x); }
    static auto slope(auto, auto y, auto dy) { return dy * y * (1 - y); }
};
/// log σ(x) = −log(1 + exp(−x)), exact for large |x|
struct log_sigmoid {
    static auto value(auto x)
    {
        const auto low = simd::select(x < 0, x, -x);
        return simd::select(x < 0, x, decltype(x){}) - simd::log1p(simd::exp(low));
    }
    static auto slope(auto x, auto, auto dy) { return dy * simd::sigmoid(-x); }
};
/// eˣ
struct exp {
    static auto value(auto x) { return simd::exp(x); }
    static auto slope(auto, auto y, auto dy) { return dy * y; }
};
/// The natural logarithm.
struct log {
    static auto value(auto x) { return simd::log(x); }
    static auto slope(auto x, auto, auto dy) { return dy / x; }
};
/// max(x, 0); its slope at 0 is 0.
struct relu {
    static auto value(auto x) { return simd::select(x > 0, x, decltype(x){}); }
    static auto slope(auto x, auto, auto dy) { return simd::select(x > 0, dy, decltype(x){}); }
};
/// x Φ(x) with Φ by a sigmoid: x σ(2u), u = √(2/π) (x + 0.044715 x³). Hendrycks and Gimpel 2016, section 2.
struct gelu {
    static auto value(auto x)
    {
        const auto s = simd::sigmoid(twice_u(x, x * x));
        return simd::select(s == 0, decltype(x){}, x * s);  // -inf · 0 is NaN
    }
    static auto slope(auto x, auto, auto dy)
    {
        const auto s = simd::sigmoid(twice_u(x, x * x)), of_s = s * (1 - s);
        const auto twice_slope = constant(x, factor) * (1 + constant(x, 3 * cubic) * (x * x));
        return dy * (s + simd::select(of_s == 0, decltype(x){}, x * of_s * twice_slope));
    }

private:
    static constexpr double factor = 1.5957691216057308, cubic = 0.044715;  // 2 √(2/π)

    static auto twice_u(auto x, auto xx) { return constant(x, factor) * x * (1 + constant(x, cubic) * xx); }
};
/// x Φ(x), Φ the cumulative distribution of the normal distribution, by erf. Hendrycks and Gimpel 2016, section 2.
struct gelu_erf {
    static auto value(auto x)
    {
        const auto below = simd::normal_cdf(x);
        return simd::select(below == 0, decltype(x){}, x * below);  // -inf · 0 is NaN
    }
    static auto slope(auto x, auto, auto dy)
    {
        const auto density = constant(x, 0.39894228040143267794) * simd::exp(x * x * constant(x, -0.5));  // 1 / √(2π)
        return dy * (simd::normal_cdf(x) + simd::select(density == 0, decltype(x){}, x * density));
    }
};
/// x σ(x). Elfwing, Uchibe, Doya 2018; also known as swish.
struct silu {
    static auto value(auto x)
    {
        const auto s = simd::sigmoid(x);
        return simd::select(s == 0, decltype(x){}, x * s);  // -inf · 0 is NaN
    }
    static auto slope(auto x, auto, auto dy)
    {
        const auto s = simd::sigmoid(x), of_s = s * (1 - s);
        return dy * (s + simd::select(of_s == 0, decltype(x){}, x * of_s));
    }
};
/// elu(x) + 1: x + 1 above 0, exp(x) below; always positive.
struct elu_plus_one {
    static auto value(auto x) { return simd::select(x > 0, x + 1, simd::exp(x)); }
    static auto slope(auto x, auto y, auto dy) { return simd::select(x > 0, dy, dy * y); }
};
/// x²
struct square {
    static auto value(auto x) { return x * x; }
    static auto slope(auto x, auto, auto dy) { return dy * (x + x); }
};

// Two arguments: value(a, b), and slope_a, slope_b(a, b, y, dy). Some also take a number, as the last argument.

/// a + b
struct add {
    static auto value(auto a, auto b) { return a + b; }
    static auto slope_a(auto, auto, auto, auto dy) { return dy; }
    static auto slope_b(auto, auto, auto, auto dy) { return dy; }
};
/// tanh(a + b) in one pass: the hidden layer of additive scores, the largest temporary of a step.
struct tanh_of_sum {
    static auto value(auto a, auto b) { return simd::tanh(a + b); }
    static auto slope_a(auto, auto, auto y, auto dy) { return slope(y, dy); }
    static auto slope_b(auto, auto, auto y, auto dy) { return slope(y, dy); }

private:
    /// The slope is 0 at a masked position, where y may be NaN.
    static auto slope(auto y, auto dy) { return simd::select(dy == decltype(dy){}, decltype(dy){}, dy * (1 - y * y)); }
};
/// a − b
struct subtract {
    static auto value(auto a, auto b) { return a - b; }
    static auto slope_a(auto, auto, auto, auto dy) { return dy; }
    static auto slope_b(auto, auto, auto, auto dy) { return -dy; }
};
/// a b
struct multiply {
    static auto value(auto a, auto b) { return a * b; }
    static auto slope_a(auto, auto b, auto, auto dy) { return dy * b; }
    static auto slope_b(auto a, auto, auto, auto dy) { return dy * a; }
};

/// a exp(min(b, 0)): a decayed by a factor with logarithm b
struct decay_history {
    static auto value(auto a, auto b) { return a * left(b); }
    static auto slope_a(auto, auto b, auto, auto dy) { return dy * left(b); }
    static auto slope_b(auto, auto b, auto y, auto dy) { return simd::select(b < 0, dy * y, decltype(dy){}); }

private:
    static auto left(auto b) { return simd::exp(simd::select(b < 0, b, decltype(b){})); }
};

/// a / b
struct divide {
    static auto value(auto a, auto b) { return a / b; }
    static auto slope_a(auto, auto b, auto, auto dy) { return dy / b; }
    static auto slope_b(auto, auto b, auto y, auto dy) { return -(dy * y / b); }
};

/// p a + q b with numbers p and q.
struct scaled_sum {
    static auto value(auto a, auto b, auto p, auto q) { return p * a + q * b; }
    static auto slope_a(auto, auto, auto, auto dy, auto p, auto) { return p * dy; }
    static auto slope_b(auto, auto, auto, auto dy, auto, auto q) { return q * dy; }
};

/// log(eᵃ + eᵇ), or log(eᵃ⁻ᵈ + eᵇ) with a number d; exact where one side is -inf. Every exponent is <= 0.
struct logaddexp {
    static auto value(auto all, auto b, auto... d)
    {
        const auto a = (all - ... - d), high = simd::select(a > b, a, b), low = simd::select(a > b, b, a);
        const auto sum = high + simd::log1p(simd::exp(low - high));
        const auto both = (a == b) & (high == none);  // -inf - -inf is NaN
        return simd::select(both, high, sum);
    }
    static auto slope_a(auto a, auto, auto y, auto dy, auto... d) { return share((a - ... - d), y, dy); }
    static auto slope_b(auto, auto b, auto y, auto dy, auto...) { return share(b, y, dy); }

    /// The share of dy of one side: dy exp(part − y); 0 where dy is 0, even if the sum is infinite or NaN, as at masked
    /// positions and in padding.
    static auto share(auto part, auto y, auto dy)
    {
        const auto nothing = (part == none) | (dy == decltype(dy){});
        return simd::select(nothing, decltype(dy){}, dy * simd::exp(part - y));
    }
};

/// e − L, or e − βL with a number β; e itself without a history (L = -inf). Temporal modulation (Sankaran et al. 2016,
/// eq. 7) in the log domain.
struct subtract_history {
    static auto value(auto e, auto L, auto... beta) { return simd::select(L == none, e, e - (L * ... * beta)); }
    static auto slope_a(auto, auto, auto, auto dy, auto...) { return dy; }
    static auto slope_b(auto, auto L, auto, auto dy, auto... beta)
    {
        return simd::select(L == none, decltype(dy){}, -(dy * ... * beta));
    }
};

}  // namespace functions

/// How the past scores of a key modulate later ones: u = e − βL, L' = log(exp(L − δ) + exp(e)).
struct modulated_by_past {
    double strength = 1;  // β
    double decay = 0;     // δ

    /// e − strength·L, or e without a history.
    auto modulated(auto e, auto L) const
    {
        return functions::subtract_history::value(e, L, functions::constant(L, strength));
    }
    /// L after a step with score e.
    auto grown(auto L, auto e) const { return functions::logaddexp::value(L, e, functions::constant(L, decay)); }
    /// ∂e for ∂L' = by, where L' is `after`.
    auto share_of_score(auto e, auto after, auto by) const { return functions::logaddexp::share(e, after, by); }
    /// ∂L for ∂L' = by.
    auto share_of_past(auto L, auto after, auto by) const
    {
        return functions::logaddexp::share(L - functions::constant(L, decay), after, by);
    }
    /// ∂L for ∂u.
    auto slope_of_past(auto L, auto d_u) const
    {
        return functions::subtract_history::slope_b(L, L, L, d_u, functions::constant(L, strength));
    }
};

namespace detail {

/// The loops of `unary` and `binary` over n elements.
template <class F, class T>
void values_of(std::size_t n, const T* x, T* y)
{
    simd::parallel_transform(
        n, y, [](auto v) { return F::value(v); }, x);
}
template <class F, class T>
void values_of_two(std::size_t n, const T* a, const T* b, T* y)
{
    simd::parallel_transform(
        n, y, [](auto u, auto v) { return F::value(u, v); }, a, b);
}
template <class F, class T>
void add_slopes_of(std::size_t n, const T* x, const T* y, const T* d_y, T* d_x)
{
    simd::parallel_transform(
        n, d_x, [](auto sum, auto v, auto w, auto d) { return sum + F::slope(v, w, d); }, static_cast<const T*>(d_x), x,
        y, d_y);
}

/// The loops of binary_per_position: a [B,T,A], b [B,A].
template <class F, class T>
void values_per_position(const shape_of_rank<3>& shape, const T* a, const T* b, T* y)
{
    const std::size_t A = shape[2];
    each_position(
        shape[0], shape[1], A,
        [=](std::size_t row, std::size_t i) {
            simd::transform(
                A, y + i * A, [](auto u, auto v) { return F::value(u, v); }, a + i * A, b + row * A);
        },
        std::size_t{1} << 16);
}
template <class F, class T>
void add_slopes_per_position(const shape_of_rank<3>& shape, const T* a, const T* b, const T* y, const T* d_y, T* d_a,
                             T* d_b)
{
    const std::size_t positions = shape[1], A = shape[2];
    each_row(
        shape[0], positions * A,
        [=](std::size_t row) {
            const auto positions_of = [=](std::size_t first, std::size_t last, T* of_b) {
                for (std::size_t i = row * positions + first; i < row * positions + last; ++i)
                    add_slopes<F>(A, a + i * A, b + row * A, y + i * A, d_y + i * A,
                                  d_a == nullptr ? nullptr : d_a + i * A, of_b);
            };
            if (d_b == nullptr) return positions_of(0, positions, nullptr);
            kernels::add_in_blocks(positions, A, d_b + row * A, positions_of);
        },
        std::size_t{1} << 16);
}

// clang-format off
#define HEED_UNARY(X, T, f) \
    X(T, f##_values, void, values_of<functions::f>, (std::size_t n, const T* x, T* y), (n, x, y)) \
    X(T, f##_slopes, void, add_slopes_of<functions::f>, (std::size_t n, const T* x, const T* y, const T* d_y, T* d_x), (n, x, y, d_y, d_x))
#define HEED_BINARY(X, T, f) \
    X(T, f##_values, void, values_of_two<functions::f>, (std::size_t n, const T* a, const T* b, T* y), (n, a, b, y)) \
    X(T, f##_repeated, void, repeat_forward<functions::f>, (const repetition& over, const T* a, const T* b, T* y), (over, a, b, y)) \
    X(T, f##_repeated_slopes, void, repeat_backward<functions::f>, (const repetition& over, const T* a, const T* b, const T* y, const T* d_y, T* d_a, T* d_b), (over, a, b, y, d_y, d_a, d_b))
#define HEED_PER_POSITION(X, T, f) \
    X(T, f##_per_position, void, values_per_position<functions::f>, (const shape_of_rank<3>& shape, const T* a, const T* b, T* y), (shape, a, b, y)) \
    X(T, f##_slopes_per_position, void, add_slopes_per_position<functions::f>, (const shape_of_rank<3>& shape, const T* a, const T* b, const T* y, const T* d_y, T* d_a, T* d_b), (shape, a, b, y, d_y, d_a, d_b))
#define HEED_OPERATIONS_ELEMENTWISE(X, T) \
    HEED_UNARY(X, T, tanh) HEED_UNARY(X, T, sigmoid) HEED_UNARY(X, T, log_sigmoid) HEED_UNARY(X, T, exp) HEED_UNARY(X, T, log) \
    HEED_UNARY(X, T, relu) HEED_UNARY(X, T, gelu) HEED_UNARY(X, T, gelu_erf) HEED_UNARY(X, T, silu) HEED_UNARY(X, T, elu_plus_one) \
    HEED_UNARY(X, T, square) \
    HEED_BINARY(X, T, add) HEED_BINARY(X, T, subtract) HEED_BINARY(X, T, multiply) HEED_BINARY(X, T, divide) \
    HEED_PER_POSITION(X, T, add) HEED_PER_POSITION(X, T, subtract) HEED_PER_POSITION(X, T, multiply) HEED_PER_POSITION(X, T, tanh_of_sum)
// clang-format on
HEED_COMPILED_KERNELS(HEED_OPERATIONS_ELEMENTWISE)

}  // namespace detail

/// y = f(x), elementwise                      ∂x += f'(x) ∂y
template <class F>
struct unary : operation<unary<F>> {
    static auto shape(const auto& x) { return x.shape; }

    template <class T, std::size_t N>
    static void forward(in<T, N> x, out<T, N> y)
    {
        detail::values_of<F>(x.size(), x.data, y.data);
    }

    template <class T, std::size_t N>
    static void backward(in<T, N> x, in<T, N> y, in<T, N> d_y, adjoint<T, N> d_x)
    {
        detail::add_slopes_of<F>(x.size(), x.data, y.data, d_y.data, d_x.data);
    }
};

/// y = f(a, b, numbers...), elementwise; a and b have the same shape. The numbers are doubles for every element type.
///
///     ∂a += ∂f/∂a ∂y,  ∂b += ∂f/∂b ∂y
template <class F, class... Numbers>
struct binary : operation<binary<F, Numbers...>> {
    const char *name, *second, *must;

    constexpr explicit binary(const char* word, const char* b = "the second argument",
                              const char* shape_of_b = "the shape of the first")
        : name(word), second(b), must(shape_of_b)
    {}

    auto shape(const auto& a, const auto& b, const Numbers&...) const
    {
        static_assert(rank_of<decltype(a)> == rank_of<decltype(b)>,
                      "heed: an elementwise operation takes two tensors of the same rank");
        require_shape(name, second, b.shape, a.shape, must);
        return a.shape;
    }

    template <class T, std::size_t N>
    static void forward(in<T, N> a, in<T, N> b, const Numbers&... c, out<T, N> y)
    {
        if constexpr (sizeof...(Numbers) == 0) {
            detail::values_of_two<F>(a.size(), a.data, b.data, y.data);
        } else {
            simd::parallel_transform(
                a.size(), y.data, [=](auto u, auto v) { return F::value(u, v, static_cast<T>(c)...); }, a.data, b.data);
        }
    }

    template <class T, std::size_t N>
    static void backward(in<T, N> a, in<T, N> b, const Numbers&... c, in<T, N> y, in<T, N> d_y, adjoint<T, N> d_a,
                         adjoint<T, N> d_b)
    {
        const auto add_to = [&](adjoint<T, N> d, const auto& slope) {
            if (!d) return;
            simd::parallel_transform(
                a.size(), d.data, [&](auto sum, auto... x) { return sum + slope(x...); }, static_cast<const T*>(d.data),
                a.data, b.data, y.data, d_y.data);
        };
        add_to(d_a, [=](auto... x) { return F::slope_a(x..., static_cast<T>(c)...); });
        add_to(d_b, [=](auto... x) { return F::slope_b(x..., static_cast<T>(c)...); });
    }
};

/// y = f(a, b), elementwise, with a smaller b repeated over a. The result has the shape of a:
///
///     a [...,N], b [...,N]      elements are paired
///     a [...,N], b [N]          b is repeated for each row of a
///     a [B,N],   b [B,1]        each element of b is repeated over a row of a; likewise any other axis of size 1
///     a [...],   b [1] or []    the element of b is repeated over a
///
///     ∂a += ∂f/∂a ∂y,  ∂b += ∂f/∂b ∂y, summed over the repetitions of an element of b
///
/// Ours: only the second argument is repeated, and a lower rank is repeated only as a row. NumPy would also add [B,A]
/// to [B,T,A] whenever B = T.
template <class F>
struct repeating_binary : operation<repeating_binary<F>> {
    const char* name;

    constexpr explicit repeating_binary(const char* word) : name(word) {}

    auto shape(const auto& a, const auto& b) const
    {
        constexpr std::size_t R = rank_of<decltype(a)>, Q = rank_of<decltype(b)>;
        static_assert(
            Q == R || (Q < R && Q <= 1),
            "heed: the second argument of an elementwise operation must have the rank of the first, or be a "
            "row [N] that is repeated: give it an axis of 1 for each repeated axis, as in `ops::reshaped(b, B, 1, N)`");
        if constexpr (Q == R || Q == 1) {
            const shape_of_rank<R> is = aligned<R>(b.shape);
            bool fits = true;
            for (std::size_t axis = 0; axis < R; ++axis) fits = fits && (is[axis] == a.shape[axis] || is[axis] == 1);
            if (fits) return a.shape;
            if constexpr (Q == R) {
                require_shape(name, "the second argument", b.shape, a.shape,
                              "the shape of the first, or 1 for a repeated axis");
            } else {
                require_shape(name, "the second argument", b.shape, shape_of_rank<1>{a.shape[R - 1]},
                              "one number for each column of the first, ", a.shape);
            }
        }
        return a.shape;
    }

    template <class T, std::size_t N, std::size_t M>
    static void forward(in<T, N> a, in<T, M> b, out<T, N> y)
    {
        if constexpr (N == M) {
            if (same_shape(a.shape, b.shape)) return binary<F>::forward(a, b, y);
        }
        detail::repeat_forward<F>({a.shape, aligned<N>(b.shape)}, a.data, b.data, y.data);
    }

    template <class T, std::size_t N, std::size_t M>
    static void backward(in<T, N> a, in<T, M> b, in<T, N> y, in<T, N> d_y, adjoint<T, N> d_a, adjoint<T, M> d_b)
    {
        if constexpr (N == M) {
            if (same_shape(a.shape, b.shape)) return binary<F>::backward(a, b, y, d_y, d_a, d_b);
        }
        detail::repeat_backward<F>({a.shape, aligned<N>(b.shape)}, a.data, b.data, y.data, d_y.data, d_a.data,
                                   d_b.data);
    }

private:
    /// The shape with leading axes of 1, up to rank R.
    template <std::size_t R, std::size_t Q>
    static shape_of_rank<R> aligned(const shape_of_rank<Q>& b)
    {
        shape_of_rank<R> all;
        all.fill(1);
        std::copy(b.begin(), b.end(), all.end() - Q);
        return all;
    }
};

/// y[b,t,:] = f(a[b,t,:], b[b,:]): the second argument [B,A] is repeated for each position of the first [B,T,A].
///
///     ∂a as above,  ∂b[b,:] += Σ_t ∂f/∂b ∂y[b,t,:]
template <class F>
struct binary_per_position : operation<binary_per_position<F>> {
    const char* name;

    constexpr explicit binary_per_position(const char* word) : name(word) {}

    auto shape(const auto& a, const auto& b) const
    {
        static_assert(rank_of<decltype(a)> == 3 && rank_of<decltype(b)> == 2,
                      "heed: a ..._per_position operation takes [B,T,A] and [B,A]");
        require_shape(name, "the second argument", b.shape, shape_of_rank<2>{a.shape[0], a.shape[2]},
                      "one row for each row of the first, which is ", a.shape);
        return a.shape;
    }

    template <class T>
    static void forward(in<T, 3> a, in<T, 2> b, out<T, 3> y)
    {
        detail::values_per_position<F>(a.shape, a.data, b.data, y.data);
    }

    template <class T>
    static void backward(in<T, 3> a, in<T, 2> b, in<T, 3> y, in<T, 3> d_y, adjoint<T, 3> d_a, adjoint<T, 2> d_b)
    {
        detail::add_slopes_per_position<F>(a.shape, a.data, b.data, y.data, d_y.data, d_a.data, d_b.data);
    }
};

/// y = tanh(x): [...] -> [...]                          ∂x += (1 − y²) ∂y
inline constexpr unary<functions::tanh> tanh{};
/// y = σ(x) = 1 / (1 + exp(−x)): [...] -> [...]         ∂x += y (1 − y) ∂y
inline constexpr unary<functions::sigmoid> sigmoid{};
/// y = log σ(x), exact for large |x|: [...] -> [...]    ∂x += σ(−x) ∂y
inline constexpr unary<functions::log_sigmoid> log_sigmoid{};
/// y = exp(x): [...] -> [...]                           ∂x += y ∂y
inline constexpr unary<functions::exp> exp{};
/// y = log(x), the natural logarithm: [...] -> [...]    ∂x += ∂y / x
inline constexpr unary<functions::log> log{};
/// y = max(x, 0): [...] -> [...]                        ∂x += ∂y where x > 0, 0 elsewhere
inline constexpr unary<functions::relu> relu{};
/// y = x σ(2u), u = √(2/π) (x + 0.044715 x³): [...] -> [...]. x Φ(x) by a sigmoid: Hendrycks and Gimpel 2016,
/// section 2.
///
///     ∂x += (s + x s (1 − s) 2u') ∂y,  s = σ(2u)
inline constexpr unary<functions::gelu> gelu{};
/// y = x Φ(x), Φ(x) = (1 + erf(x / √2)) / 2: [...] -> [...]. The GELU of the same section.
///
///     ∂x += (Φ(x) + x φ(x)) ∂y,  φ(x) = exp(−x²/2) / √(2π)
inline constexpr unary<functions::gelu_erf> gelu_erf{};
/// y = x σ(x): [...] -> [...]                           ∂x += (s + x s (1 − s)) ∂y,  s = σ(x)
/// Elfwing, Uchibe and Doya 2018; also known as swish.
inline constexpr unary<functions::silu> silu{};
/// y = elu(x) + 1, x + 1 above 0, exp(x) below: [...] -> [...]     ∂x += ∂y above 0, y ∂y below
inline constexpr unary<functions::elu_plus_one> elu_plus_one{};
/// y = x²: [...] -> [...]                               ∂x += 2 x ∂y
inline constexpr unary<functions::square> square{};

/// y = a + b, b repeated: [...] and [...] -> [...]      ∂a += ∂y,  ∂b += ∂y
inline constexpr repeating_binary<functions::add> add{"add"};
/// y = a − b, b repeated: [...] and [...] -> [...]      ∂a += ∂y,  ∂b −= ∂y
inline constexpr repeating_binary<functions::subtract> subtract{"subtract"};
/// y = a ⊙ b, b repeated: [...] and [...] -> [...]      ∂a += b ∂y,  ∂b += a ∂y
inline constexpr repeating_binary<functions::multiply> multiply{"multiply"};
/// y = a / b, b repeated: [...] and [...] -> [...]      ∂a += ∂y / b,  ∂b −= y ∂y / b
inline constexpr repeating_binary<functions::divide> divide{"divide"};
/// y = a + b for policies, which add tensors of equal shapes. b is not repeated, so that a query with one row for a
/// batch of many throws shape_error: [...] and [...] -> [...]
///
///     ∂a += ∂y,  ∂b += ∂y
inline constexpr binary<functions::add> add_same_shape{"add"};
/// y = a ⊙ b of the same shape, as `add_same_shape`: [...] and [...] -> [...]      ∂a += b ∂y,  ∂b += a ∂y
inline constexpr binary<functions::multiply> multiply_alike{"multiply"};
/// y = a exp(min(b, 0)) of the same shape: [...] and [...] -> [...]
///
///     ∂a += exp(min(b, 0)) ∂y,  ∂b += y ∂y where b < 0
inline constexpr binary<functions::decay_history> decay_history{"decay_history"};
/// y = log(eᵃ + eᵇ), exact where one side is -inf: [...] and [...] -> [...]
///
///     ∂a += exp(a − y) ∂y,  ∂b += exp(b − y) ∂y, 0 for a side of -inf
inline constexpr binary<functions::logaddexp> logaddexp{"logaddexp"};
/// y = e − L, and e where L = -inf: [...] and [...] -> [...]      ∂e += ∂y,  ∂L −= ∂y where L is not -inf
inline constexpr binary<functions::subtract_history> subtract_history{"subtract_history"};

/// y = p·a + q·b with numbers p and q: [...] and [...] -> [...]         ∂a += p ∂y,  ∂b += q ∂y
inline constexpr binary<functions::scaled_sum, double, double> scaled_sum{"scaled_sum"};

/// y[b,t,:] = a[b,t,:] + b[b,:]: a [B,T,A], b [B,A] -> [B,T,A].      ∂a += ∂y,  ∂b[b,:] += Σ_t ∂y[b,t,:]
inline constexpr binary_per_position<functions::add> add_per_position{"add_per_position"};
/// y[b,t,:] = tanh(a[b,t,:] + b[b,:]): a [B,T,A], b [B,A] -> [B,T,A].
///
///     ∂a += (1 − y²) ∂y,  ∂b[b,:] += Σ_t (1 − y²) ∂y[b,t,:]
inline constexpr binary_per_position<functions::tanh_of_sum> tanh_of_sum_per_position{"tanh_of_sum_per_position"};
/// y[b,t,:] = a[b,t,:] − b[b,:]: a [B,T,A], b [B,A] -> [B,T,A].      ∂a += ∂y,  ∂b[b,:] −= Σ_t ∂y[b,t,:]
inline constexpr binary_per_position<functions::subtract> subtract_per_position{"subtract_per_position"};
/// y[b,t,:] = a[b,t,:] ⊙ b[b,:]: a [B,T,A], b [B,A] -> [B,T,A].
///
///     ∂a[b,t,:] += b[b,:] ∂y[b,t,:],  ∂b[b,:] += Σ_t a[b,t,:] ∂y[b,t,:]
inline constexpr binary_per_position<functions::multiply> multiply_per_position{"multiply_per_position"};

/// y = factor · x: x [...] -> [...]           ∂x += factor · ∂y
/// The factor is a double for every element type, so that policies need no casts.
struct scale_op : operation<scale_op> {
    static auto shape(const auto& x, double) { return x.shape; }

    template <class T, std::size_t N>
    static void forward(in<T, N> x, double factor, out<T, N> y)
    {
        simd::parallel_transform(
            x.size(), y.data, [f = static_cast<T>(factor)](auto v) { return v * f; }, x.data);
    }

    template <class T, std::size_t N>
    static void backward(in<T, N> x, double factor, in<T, N>, in<T, N> d_y, adjoint<T, N> d_x)
    {
        kernels::add_scaled(x.size(), d_x.data, static_cast<T>(factor), d_y.data);
    }
};
inline constexpr scale_op scale{};

}  // namespace heed::inline HEED_TARGET::ops
