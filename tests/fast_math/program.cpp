// SPDX-License-Identifier: BSD-3-Clause
//
// A user's program, compiled with flags that let the compiler reassociate: functions and weights must be correct, and
// masked positions must stay masked. Prints the errors and then returns 1.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/score/additive.hpp>
#include <heed/score/general.hpp>

namespace {

using namespace heed;

int wrong = 0;

void require(bool holds, const char* what, double is = 0, double right = 0)
{
    if (holds) return;
    ++wrong;
    std::printf("%s: %.9g, right is %.9g\n", what, is, right);
}

void near(double is, double right, double tolerance, const char* what)
{
    require(std::fabs(is - right) <= tolerance * std::fabs(right), what, is, right);
}

/// Compares f over [low, high] to 16 units in the last place, where the result is a normal number: with -ffast-math,
/// g++ sets the processor to flush subnormal numbers to 0.
template <class T, class F, class Exact>
void functions_agree(const char* what, T low, T high, F f, Exact exact)
{
    const std::size_t n = 4001;
    std::vector<T> x(n), y(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = low + (high - low) * static_cast<T>(i) / static_cast<T>(n - 1);
    simd::transform(n, y.data(), f, static_cast<const T*>(x.data()));
    for (std::size_t i = 0; i < n; ++i) {
        const double right = static_cast<double>(exact(static_cast<long double>(x[i])));
        if (std::fabs(right) < static_cast<double>(std::numeric_limits<T>::min())) continue;
        near(static_cast<double>(y[i]), right, 16 * static_cast<double>(std::numeric_limits<T>::epsilon()), what);
    }
}

template <class T>
void functions()
{
    using L = long double;
    const auto exp = [](auto x) { return simd::exp(x); };
    const auto log1p = [](auto x) { return simd::log1p(x); };
    const auto log = [](auto x) { return simd::log(x); };
    const auto tanh = [](auto x) { return simd::tanh(x); };
    const auto sigmoid = [](auto x) { return simd::sigmoid(x); };
    const T most = sizeof(T) == 4 ? T(88.7) : T(709.7);
    functions_agree<T>("exp", -most, most, exp, [](L x) { return std::exp(x); });
    functions_agree<T>("exp", T(-1), T(1), exp, [](L x) { return std::exp(x); });
    functions_agree<T>("log", T(0.01), T(4), log, [](L x) { return std::log(x); });
    functions_agree<T>("log", T(1), T(1e20), log, [](L x) { return std::log(x); });
    functions_agree<T>("log1p", T(0), T(1e-6), log1p, [](L x) { return std::log1p(x); });
    functions_agree<T>("log1p", T(0), T(3), log1p, [](L x) { return std::log1p(x); });
    functions_agree<T>("tanh", T(-1e-6), T(1e-6), tanh, [](L x) { return std::tanh(x); });
    functions_agree<T>("tanh", T(-12), T(12), tanh, [](L x) { return std::tanh(x); });
    functions_agree<T>("sigmoid", T(-80), T(80), sigmoid, [](L x) { return 1 / (1 + std::exp(-x)); });

    const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    const auto at = [](auto f, T x) {
        T y = 0;
        simd::transform(1, &y, f, static_cast<const T*>(&x));
        return static_cast<double>(y);
    };
    require(at(exp, -infinity) == 0, "exp(-inf)", at(exp, -infinity), 0);
    require(at(log, T(0)) == -std::numeric_limits<double>::infinity(), "log(0)", at(log, T(0)));
    require(at(sigmoid, -infinity) == 0, "sigmoid(-inf)", at(sigmoid, -infinity), 0);
    require(at(sigmoid, infinity) == 1, "sigmoid(inf)", at(sigmoid, infinity), 1);
    require(at(tanh, infinity) == 1, "tanh(inf)", at(tanh, infinity), 1);
    for (const double y : {at(exp, nan), at(log, nan), at(tanh, nan), at(sigmoid, nan)})
        require(std::isnan(y), "a function of NaN", y, std::numeric_limits<double>::quiet_NaN());
}

template <class T, std::size_t N>
array<T, N> numbers(const shape_of_rank<N>& shape, unsigned seed)
{
    array<T, N> x(shape);
    for (T& e : x) {
        seed = seed * 1664525u + 1013904223u;
        e = static_cast<T>(seed >> 8) / T(1 << 23) - T(1);
    }
    return x;
}

constexpr std::size_t B = 3, P = 21, D = 19, Q = 17, A = 37;  // batch, positions, sizes
const std::size_t real[B] = {21, 5, 0};

/// α of softmax(e − L), where L is the accumulated history (-inf: none), over the visible positions.
std::vector<double> softmax(const std::vector<double>& e, const std::vector<double>& L, std::size_t hidden)
{
    std::vector<double> y(e.size());
    double top = -1e300, sum = 0;
    const auto left = [&](std::size_t j) { return std::isinf(L[j]) ? e[j] : e[j] - L[j]; };
    for (std::size_t j = 0; j < e.size(); ++j) {
        if (j != hidden && left(j) > top) top = left(j);
    }
    for (std::size_t j = 0; j < e.size(); ++j) sum += y[j] = j == hidden ? 0 : std::exp(left(j) - top);
    for (double& w : y) w /= sum;
    return y;
}

/// Three steps of a mechanism, one with a mask, against plain loops in double. score(b, j, query): e_j.
template <class T, class Attention, class Score>
void mechanism(const char* what, const Attention& attend, const array<T, 3>& annotations, Score score, bool temporal)
{
    const auto memory = attend.on(annotations, lengths{real[0], real[1], real[2]});
    auto state = attend.start(memory), composed_state = attend.start(memory);
    std::vector<std::vector<double>> L(B, std::vector<double>(P, -std::numeric_limits<double>::infinity()));
    const std::size_t hidden = 2;
    for (unsigned step = 0; step < 3; ++step) {
        const auto query = numbers<T, 2>({B, Q}, 100 + step);
        array<bool, 2> may(shape_of_rank<2>{B, P}, true);
        for (std::size_t b = 0; b < B; ++b) may(b, hidden) = step != 1;
        const auto got = attend.step(memory, query, state, boolean_mask{may});
        const auto composed = attend.compose(memory, query, composed_state, boolean_mask{may});
        for (std::size_t b = 0; b < B; ++b) {
            std::vector<double> e(real[b]);
            for (std::size_t j = 0; j < real[b]; ++j) e[j] = score(b, j, query);
            const std::vector<double> right = softmax(e, L[b], step == 1 ? hidden : P);
            double context = 0;
            for (std::size_t j = 0; j < P; ++j) {
                for (const auto* result : {&got, &composed}) {
                    const double is = static_cast<double>(result->weights(b, j));
                    if (j >= real[b] || (step == 1 && j == hidden)) {
                        require(is == 0, what, is, 0);
                    } else {
                        near(is, right[j], sizeof(T) == 4 ? 2e-5 : 1e-12, what);
                    }
                }
                if (j < real[b]) context += right[j] * static_cast<double>(annotations(b, j, 0));
            }
            for (const auto* result : {&got, &composed}) {
                const double is = static_cast<double>(result->context(b, 0));
                require(std::fabs(is - context) <= (sizeof(T) == 4 ? 2e-5 : 1e-12), what, is, context);
            }
            for (std::size_t j = 0; temporal && j < real[b]; ++j) {
                L[b][j] = std::isinf(L[b][j]) ? e[j] : std::log(std::exp(L[b][j]) + std::exp(e[j]));
            }
        }
        state = got.state;
        composed_state = composed.state;
    }
}

/// Annotations, parameters, and scores computed by plain loops in double.
template <class T>
struct example {
    array<T, 3> annotations = numbers<T, 3>({B, P, D}, 1);
    array<T, 2> M = numbers<T, 2>({Q, D}, 2), W = numbers<T, 2>({Q, A}, 3), U = numbers<T, 2>({D, A}, 4);
    array<T, 1> v = numbers<T, 1>({A}, 5);

    example()
    {
        for (std::size_t b = 0; b < B; ++b) {  // padding has arbitrary values
            for (std::size_t j = real[b]; j < P; ++j) {
                for (std::size_t d = 0; d < D; ++d)
                    annotations(b, j, d) =
                        d % 2 == 0 ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
            }
        }
    }

    double general(std::size_t b, std::size_t j, const array<T, 2>& query) const
    {
        double e = 0;
        for (std::size_t i = 0; i < Q; ++i) {
            for (std::size_t d = 0; d < D; ++d)
                e += static_cast<double>(query(b, i)) * static_cast<double>(M(i, d)) *
                     static_cast<double>(annotations(b, j, d));
        }
        return e;
    }
    double additive(std::size_t b, std::size_t j, const array<T, 2>& query) const
    {
        double e = 0;
        for (std::size_t a = 0; a < A; ++a) {
            double x = 0;
            for (std::size_t i = 0; i < Q; ++i) x += static_cast<double>(query(b, i)) * static_cast<double>(W(i, a));
            for (std::size_t d = 0; d < D; ++d)
                x += static_cast<double>(annotations(b, j, d)) * static_cast<double>(U(d, a));
            e += static_cast<double>(v(a)) * std::tanh(x);
        }
        return e;
    }
};

/// Each score, each normalizer and each number type, but not every combination: the kernels are the same templates.
void mechanisms()
{
    const example<float> f;
    mechanism<float>(
        "general, softmax", attention{score::general{f.M}, normalize::softmax{}, combine::weighted_sum{}},
        f.annotations, [&](const auto&... of) { return f.general(of...); }, false);
    mechanism<float>(
        "additive, temporal", attention{score::additive{f.W, f.U, f.v}, normalize::temporal{}, combine::weighted_sum{}},
        f.annotations, [&](const auto&... of) { return f.additive(of...); }, true);
    const example<double> d;
    mechanism<double>(
        "additive, softmax", attention{score::additive{d.W, d.U, d.v}, normalize::softmax{}, combine::weighted_sum{}},
        d.annotations, [&](const auto&... of) { return d.additive(of...); }, false);
}

}  // namespace

int main()
{
    functions<float>();
    functions<double>();
    mechanisms();
    if (wrong != 0) std::printf("%d numbers are wrong\n", wrong);
    return wrong == 0 ? 0 : 1;
}
