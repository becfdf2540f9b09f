// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/registers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <heed/core/random.hpp>
#include <support/functions_of_registers.hpp>
#include <support/ulps.hpp>

// A sample of the measurement in docs/explanation/accuracy.md: numbers of every exponent and sign, the neighbors of the
// code's thresholds, and the inputs with the largest errors that were found.

namespace {

using namespace heed;
using namespace heed::test;

/// The largest errors that were found, rounded up: in units of the last place of results, or of 1 for results up to 1,
/// and the largest result that becomes 0.
struct bounds {
    double ulps = 0, of_one = 0, flushed = 0;
};
struct row {
    const char* function;
    bounds floats, doubles;
    std::vector<double> worst;  // inputs, for float
};
constexpr double any = std::numeric_limits<double>::infinity();  // relative errors of small results have no bound

const row found[] = {
    {"exp", {1.1, 0.47}, {0.98, 0.42}, {5.19886494, -0.346312493, -48.8663521}},
    {"exp_of_nonpositive",
     {1.1, 0.47, 1.1756e-38},
     {0.98, 0.42, 2.2263e-308},
     {-16.2879658, -0.346312493, -48.8663521}},
    {"log", {1.97, 0.8}, {1.85, 0.63}, {1.00386178, 0.374468982}},
    {"log1p", {2.47, 0.68}, {2.45, 0.61}, {0.0038618152, 0.0635686815, 0.93711561}},
    {"tanh", {4.88, 2.44}, {2.5, 0.75}, {0.0625393912, 5.10052395, 5.34615755, 3.81238604}},
    {"sigmoid", {2.49, 0.75, 2.94e-39}, {2.09, 0.75, 5.6e-309}, {-16.635704, 7.85921097}},
    {"normal_cdf", {any, 0.82}, {any, 0.79}, {0.518279731, 0.35184893}},
    {"sin", {2.03, 1.02}, {2.31, 0.97}, {997.355957, 35777.957}},
    {"cos", {2.02, 1.01}, {2.07, 0.92}, {40944.2773, 4168.96436}},
    {"sqrt", {0.5, 0.25}, {0.5, 0.25}, {3.00926536e-36}},
    {"reciprocal", {0.5, 0.25}, {0.5, 0.25}, {2.31605587e-38, 1.97028244}},
    {"log_sigmoid", {3.34, 1.03}, {2.92, 0.92}, {2.74751282, 2.7611742, -0.0653783977}},
    {"gelu", {any, 1.18, 2.96e-38}, {any, 1.13, 1.1e-307}, {1.13761592}},
    {"gelu_erf", {any, 0.92, 1.2e-44}, {any, 0.81, 1e-322}, {1.05507457}},
    {"silu", {4.05, 1.06, 2.7e-37}, {2.89, 0.98, 4e-306}, {-88.4058609, 1.27551782}},
    {"elu_plus_one", {1.1, 0.47}, {0.98, 0.42}, {-16.2879658, -0.346312493, -48.8663521}},
    {"tanh_slope", {any, 4.88, 5.2e-7}, {any, 1.71, 2.3e-16}, {5.10052395}},
    {"sigmoid_slope", {any, 0.75, 6e-8}, {any, 0.75, 1.2e-16}, {8.66272163}},
    {"log1p_slope", {1.5, 0.75}, {1.5, 0.75}, {0.000172555447}},
    {"sqrt_slope", {1.5, 0.75}, {1.49, 0.73}, {4.73106331e-38, 0.251546472}},
    {"normal_cdf_slope", {any, 0.4, 1e-45}, {any, 0.36, 5e-324}, {0.825763881}},
    {"gelu_slope", {any, 1.04, 2.1e-8}, {any, 0.95, 1.1e-305}, {0.397319645, -0.752461433}},
    {"gelu_erf_slope", {any, 1.02, 1.5e-44}, {any, 1.08, 5e-322}, {0.662523568}},
    {"silu_slope", {any, 0.8, 2.9e-9}, {any, 0.75, 4e-306}, {0.692381024, -1.27846467}},
};

template <class T>
T scaled(T mantissa, int exponent)
{
    return std::ldexp(mantissa, exponent);
}

/// Positive numbers, in order.
template <class T>
std::vector<T> sample()
{
    using limits = std::numeric_limits<T>;
    constexpr T eps = limits::epsilon();
    std::vector<T> x{0, limits::denorm_min(), limits::min() - limits::denorm_min(), limits::infinity()};
    for (int exponent = limits::min_exponent - 1; exponent < limits::max_exponent; ++exponent) {
        const int count = exponent < -30 || exponent > 20 ? (sizeof(T) == 4 ? 6 : 2) : 500;
        for (const T mantissa : {T(1), 1 + eps, 1 + 2 * eps, 2 - eps, 2 - 2 * eps})
            x.push_back(scaled(mantissa, exponent));
        for (int i = 0; i < count; ++i) {
            const auto random =
                static_cast<std::uint32_t>(mix(static_cast<std::uint64_t>(1000 * (exponent + 2000) + i)));
            x.push_back(scaled(1 + static_cast<T>(random) * T(0x1p-32), exponent));
        }
    }
    std::vector<double> thresholds{87.3365,    708.396,
                                   88.7228394, 709.782712893384,
                                   103.972084, 745.133219101941,
                                   89,         710,
                                   176,        400,
                                   1418.2,     3200,
                                   9,          9.6,
                                   10,         20,
                                   40,         1e5,
                                   1e6,        0.7071067811865476,
                                   0.75,       1.5,
                                   3.5,        4.5};
    for (int k = 1; k < 64; ++k) {
        thresholds.push_back((k - 0.5) * 0.6931471805599453);  // between two n of exp
        thresholds.push_back(k * 1.5707963267948966);
        thresholds.push_back(0.75 + k / 64.0);  // the table of log
    }
    for (const double threshold : thresholds) {
        T low = static_cast<T>(threshold), high = low;
        x.push_back(low);
        for (int i = 0; i < 8; ++i) {
            x.push_back(low = std::nextafter(low, T(0)));
            x.push_back(high = std::nextafter(high, limits::infinity()));
        }
    }
    return x;
}

template <class T>
double error_of_one(T got, long double want)
{
    return static_cast<double>(std::abs(static_cast<long double>(got) - want)) /
           double{std::numeric_limits<T>::epsilon()};
}

template <class F, class T>
void check_sample(const row& of)
{
    const bounds& at_most = sizeof(T) == 4 ? of.floats : of.doubles;
    std::vector<T> x = sample<T>();
    for (const double each : of.worst) {
        x.push_back(std::abs(static_cast<T>(each)));
        x.push_back(std::nextafter(x.back(), T(0)));
    }
    const std::size_t positive = x.size();
    for (std::size_t i = 0; i < positive; ++i) x.push_back(-x[i]);
    x.push_back(std::numeric_limits<T>::quiet_NaN());
    std::erase_if(x, [](T each) { return each == each && !F::domain(each); });
    std::sort(x.begin(), x.end() - 1);
    std::vector<T> y(x.size());
    simd::transform(
        x.size(), y.data(), [](auto v) { return F::of(v); }, x.data());
    CHECK(std::isnan(y.back()));
    double most_ulps = 0, most_of_one = 0;
    T at_ulps = 0, at_of_one = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        const auto want = static_cast<long double>(F::exact(static_cast<long double>(x[i])));
        if (std::isnan(want)) {
            CAPTURE(x[i]);
            REQUIRE(std::isnan(y[i]));
            continue;
        }
        const double of_one = std::abs(want) <= 1 ? error_of_one(y[i], want) : 0;
        if (!(of_one <= most_of_one)) most_of_one = of_one, at_of_one = x[i];
        if (y[i] == 0 && std::abs(want) <= static_cast<long double>(at_most.flushed)) continue;
        const double in_ulps = std::isfinite(at_most.ulps) ? ulps(y[i], want) : 0;
        if (!(in_ulps <= most_ulps)) most_ulps = in_ulps, at_ulps = x[i];
    }
    CAPTURE(at_ulps);
    CHECK(most_ulps <= at_most.ulps);
    CAPTURE(at_of_one);
    CHECK(most_of_one <= at_most.of_one);
}

}  // namespace

TEST_CASE_TEMPLATE("errors stay within those found at every float", T, float, double)
{
    std::size_t number = 0;
    accuracy::each_function([&](auto f) {
        using F = decltype(f);
        const row& of = found[number++];
        INFO(of.function);
        REQUIRE(std::string(of.function) == F::name);
        check_sample<F, T>(of);
    });
    CHECK(number == std::size(found));
}
