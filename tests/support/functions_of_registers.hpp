// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>

#include <heed/ops/elementwise.hpp>
#include <heed/simd/simd.hpp>

/// The functions of one number that heed computes on registers, each with its exact value in a wider type: the C
/// library's double for float, long double for double.
///
///     of(x)       on a register
///     exact(x)    of one number, where domain(x) holds
///     rises       the direction of change with growing x: 1, −1, or 0 if it changes
///     falls_off   whether it falls on both sides of 0
///     parity      1: even, −1: odd, bit by bit; 0: neither
namespace heed::inline HEED_TARGET::accuracy {

struct any_function {
    static constexpr int rises = 0, parity = 0;
    static constexpr bool falls_off = false;
    static bool domain(auto) { return true; }

protected:
    template <class X>
    static X logistic(X x)
    {
        return 1 / (1 + std::exp(-x));
    }
    template <class X>
    static X below(X x)
    {
        return std::erfc(x * X(-0.707106781186547524400844362104849039L)) / 2;
    }
    template <class X>
    static X density(X x)
    {
        return std::exp(x * x / -2) * X(0.398942280401432677939946059934381868L);
    }
    template <class X>
    static X twice_u(X x)
    {
        return X(1.59576912160573071175978423973752747L) * x * (1 + X(0.044715L) * x * x);
    }
    /// x y, and 0 if y is 0 and x infinite.
    template <class X>
    static X product(X x, X y)
    {
        return y == 0 ? 0 : x * y;
    }
    /// The slope with respect to x of a function of registers of dual numbers.
    static auto slope_of(auto x, auto f) { return f(simd::dual_vec{x, decltype(x){} + 1}).slope; }
};
struct rising : any_function {
    static constexpr int rises = 1;
};

struct exp : rising {
    static constexpr const char* name = "exp";
    static auto of(auto x) { return simd::exp(x); }
    static auto exact(auto x) { return std::exp(x); }
};
struct exp_of_nonpositive : rising {
    static constexpr const char* name = "exp_of_nonpositive";
    static bool domain(auto x) { return x <= 0; }
    static auto of(auto x) { return simd::exp_of_nonpositive(x); }
    static auto exact(auto x) { return std::exp(x); }
};
struct log : rising {
    static constexpr const char* name = "log";
    static auto of(auto x) { return simd::log(x); }
    static auto exact(auto x) { return std::log(x); }
};
struct log1p : rising {
    static constexpr const char* name = "log1p";
    static bool domain(auto x) { return x >= 0; }
    static auto of(auto x) { return simd::log1p(x); }
    static auto exact(auto x) { return std::log1p(x); }
};
struct tanh : rising {
    static constexpr const char* name = "tanh";
    static constexpr int parity = -1;
    static auto of(auto x) { return simd::tanh(x); }
    static auto exact(auto x) { return std::tanh(x); }
};
struct sigmoid : rising {
    static constexpr const char* name = "sigmoid";
    static auto of(auto x) { return simd::sigmoid(x); }
    static auto exact(auto x) { return logistic(x); }
};
struct normal_cdf : rising {
    static constexpr const char* name = "normal_cdf";
    static auto of(auto x) { return simd::normal_cdf(x); }
    static auto exact(auto x) { return below(x); }
};
struct sin : any_function {
    static constexpr const char* name = "sin";
    static constexpr int parity = -1;
    static auto of(auto x) { return simd::sin(x); }
    static auto exact(auto x) { return std::sin(x); }
};
struct cos : any_function {
    static constexpr const char* name = "cos";
    static constexpr int parity = 1;
    static auto of(auto x) { return simd::cos(x); }
    static auto exact(auto x) { return std::cos(x); }
};
struct sqrt : rising {
    static constexpr const char* name = "sqrt";
    static auto of(auto x) { return simd::sqrt(x); }
    static auto exact(auto x) { return std::sqrt(x); }
};
struct reciprocal : any_function {
    static constexpr const char* name = "reciprocal";
    static constexpr int rises = -1, parity = -1;
    static auto of(auto x) { return 1 / x; }
    static auto exact(auto x) { return 1 / x; }
};
struct log_sigmoid : rising {
    static constexpr const char* name = "log_sigmoid";
    static auto of(auto x) { return ops::functions::log_sigmoid::value(x); }
    template <class X>
    static X exact(X x)
    {
        return (x < 0 ? x : 0) - std::log1p(std::exp(-std::abs(x)));
    }
};
struct gelu : any_function {
    static constexpr const char* name = "gelu";
    static auto of(auto x) { return ops::functions::gelu::value(x); }
    static auto exact(auto x) { return product(x, logistic(twice_u(x))); }
};
struct gelu_erf : any_function {
    static constexpr const char* name = "gelu_erf";
    static auto of(auto x) { return ops::functions::gelu_erf::value(x); }
    static auto exact(auto x) { return product(x, below(x)); }
};
struct silu : any_function {
    static constexpr const char* name = "silu";
    static auto of(auto x) { return ops::functions::silu::value(x); }
    static auto exact(auto x) { return product(x, logistic(x)); }
};
struct elu_plus_one : rising {
    static constexpr const char* name = "elu_plus_one";
    static auto of(auto x) { return ops::functions::elu_plus_one::value(x); }
    static auto exact(auto x) { return x > 0 ? x + 1 : std::exp(x); }
};

// Slopes, if they are not one of the functions above: those of backward passes, and of dual numbers.

/// The slope of one of ops::functions.
template <class F>
auto slope_of_operation(auto x)
{
    return F::slope(x, F::value(x), decltype(x){} + 1);
}

struct tanh_slope : any_function {
    static constexpr const char* name = "tanh_slope";
    static constexpr int parity = 1;
    static constexpr bool falls_off = true;
    static auto of(auto x) { return slope_of_operation<ops::functions::tanh>(x); }
    static auto exact(auto x)
    {
        const auto e = std::exp(-2 * std::abs(x));
        return 4 * e / ((1 + e) * (1 + e));
    }
};
struct sigmoid_slope : any_function {
    static constexpr const char* name = "sigmoid_slope";
    static constexpr bool falls_off = true;
    static auto of(auto x) { return slope_of_operation<ops::functions::sigmoid>(x); }
    static auto exact(auto x)
    {
        const auto e = std::exp(-std::abs(x));
        return e / ((1 + e) * (1 + e));
    }
};
struct log1p_slope : any_function {
    static constexpr const char* name = "log1p_slope";
    static constexpr int rises = -1;
    static bool domain(auto x) { return x >= 0; }
    static auto of(auto x)
    {
        return slope_of(x, [](auto d) { return simd::log1p(d); });
    }
    static auto exact(auto x) { return 1 / (1 + x); }
};
struct sqrt_slope : any_function {
    static constexpr const char* name = "sqrt_slope";
    static constexpr int rises = -1;
    static bool domain(auto x) { return x >= 0; }
    static auto of(auto x)
    {
        return slope_of(x, [](auto d) { return simd::sqrt(d); });
    }
    static auto exact(auto x) { return 1 / (2 * std::sqrt(x)); }
};
struct normal_cdf_slope : any_function {
    static constexpr const char* name = "normal_cdf_slope";
    static constexpr int parity = 1;
    static constexpr bool falls_off = true;
    static auto of(auto x)
    {
        return slope_of(x, [](auto d) { return simd::normal_cdf(d); });
    }
    static auto exact(auto x) { return density(x); }
};
struct gelu_slope : any_function {
    static constexpr const char* name = "gelu_slope";
    static auto of(auto x) { return slope_of_operation<ops::functions::gelu>(x); }
    template <class X>
    static X exact(X x)
    {
        const X s = logistic(twice_u(x)), rest = logistic(-twice_u(x)), of_s = s * rest;
        const X twice_slope = X(1.59576912160573071175978423973752747L) * (1 + 3 * X(0.044715L) * x * x);
        return s + (of_s == 0 ? 0 : x * of_s * twice_slope);
    }
};
struct gelu_erf_slope : any_function {
    static constexpr const char* name = "gelu_erf_slope";
    static auto of(auto x) { return slope_of_operation<ops::functions::gelu_erf>(x); }
    static auto exact(auto x) { return below(x) + product(x, density(x)); }
};
struct silu_slope : any_function {
    static constexpr const char* name = "silu_slope";
    static auto of(auto x) { return slope_of_operation<ops::functions::silu>(x); }
    static auto exact(auto x) { return logistic(x) + product(x, logistic(x) * logistic(-x)); }
};

/// f of each function.
void each_function(auto&& f)
{
    const auto all = [&](auto... functions) { (f(functions), ...); };
    all(exp{}, exp_of_nonpositive{}, log{}, log1p{}, tanh{}, sigmoid{}, normal_cdf{}, sin{}, cos{}, sqrt{},
        reciprocal{}, log_sigmoid{}, gelu{}, gelu_erf{}, silu{}, elu_plus_one{}, tanh_slope{}, sigmoid_slope{},
        log1p_slope{}, sqrt_slope{}, normal_cdf_slope{}, gelu_slope{}, gelu_erf_slope{}, silu_slope{});
}

}  // namespace heed::inline HEED_TARGET::accuracy
