// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/dual_registers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/simd/simd.hpp>
#include <support/dual_numbers.hpp>

// Registers of dual numbers compared with scalars.

namespace {

using namespace heed;
using namespace heed::test;

/// Checks that a function of registers, of lanes and of scalars agrees.
template <class T>
void check_function(const char* name, const auto& of_register, const auto& of_one)
{
    CAPTURE(name);
    const std::size_t n = 3 * simd::lanes<T> + 1;
    const auto x = dual_numbers<T>(n), y = dual_numbers<T>(n, 0.5);
    std::vector<dual_number<T>> z(n);
    simd::transform(n, z.data(), of_register, static_cast<const dual_number<T>*>(x.data()),
                    static_cast<const dual_number<T>*>(y.data()));
    for (std::size_t i = 0; i < n; ++i) CHECK(near(z[i], of_one(x[i], y[i])));
}

template <class T>
void check_all()
{
    using D = dual_number<T>;
    const auto both = [](const char* name, const auto& f) { check_function<T>(name, f, f); };
    both("+", [](auto a, auto b) { return a + b; });
    both("-", [](auto a, auto b) { return -a - b; });
    both("*", [](auto a, auto b) { return a * b; });
    both("/", [](auto a, auto b) { return a / b; });
    both("constants", [](auto a, auto) { return 2 * a - a / 3 + (1 - a) * 0.5; });
    check_function<T>(
        "fma", [](auto a, auto b) { return simd::fma(a, b, a); }, [](D a, D b) { return a * b + a; });
    check_function<T>(
        "exp", [](auto a, auto) { return simd::exp(a); }, [](D a, D) { return exp(a); });
    check_function<T>(
        "log", [](auto a, auto) { return simd::log(a); }, [](D a, D) { return log(a); });
    check_function<T>(
        "log1p", [](auto a, auto) { return simd::log1p(a); }, [](D a, D) { return log1p(a); });
    check_function<T>(
        "tanh", [](auto a, auto) { return simd::tanh(a); }, [](D a, D) { return tanh(a); });
    check_function<T>(
        "sin", [](auto a, auto) { return simd::sin(a); }, [](D a, D) { return sin(a); });
    check_function<T>(
        "cos", [](auto a, auto) { return simd::cos(a); }, [](D a, D) { return cos(a); });
    check_function<T>(
        "sqrt", [](auto a, auto) { return simd::sqrt(a); }, [](D a, D) { return sqrt(a); });
    check_function<T>(
        "sigmoid", [](auto a, auto) { return simd::sigmoid(a); }, [](D a, D) { return 1 / (1 + exp(-a)); });
    check_function<T>(
        "normal_cdf", [](auto a, auto) { return simd::normal_cdf(a); },
        [](D a, D) {
            using real = decltype(a.value);
            const real below = std::erfc(-a.value / std::sqrt(real(2))) / 2;
            return D(below, std::exp(-a.value * a.value / 2) / std::sqrt(2 * std::acos(real(-1))) * a.slope);
        });
    check_function<T>(
        "max", [](auto a, auto b) { return simd::max(a, b); }, [](D a, D b) { return a > b ? a : b; });
    check_function<T>(
        "min", [](auto a, auto b) { return simd::min(a, b); }, [](D a, D b) { return a < b ? a : b; });
    check_function<T>(
        "select", [](auto a, auto b) { return simd::select(a >= b, a + b, a * b); },
        [](D a, D b) { return a >= b ? a + b : a * b; });
}

}  // namespace

TEST_CASE("functions of registers equal those of scalars")
{
    check_all<float>();
    check_all<double>();
}

TEST_CASE("partial loads and stores do not touch other elements")
{
    const auto check = [](auto element) {
        using T = decltype(element);
        using D = dual_number<T>;
        constexpr std::size_t L = simd::lanes<D>;
        static_assert(L == simd::lanes<T>);
        const auto x = dual_numbers<T>(L);
        for (std::size_t n = 0; n < L; ++n) {
            const auto v = simd::load(x.data(), n);
            std::vector<D> y(L, D(7, 8));
            simd::store(y.data(), v, n);
            for (std::size_t i = 0; i < L; ++i) {
                CHECK(v[i].value == (i < n ? x[i].value : 0));
                CHECK(v[i].slope == (i < n ? x[i].slope : 0));
                CHECK(y[i].value == (i < n ? x[i].value : 7));
                CHECK(y[i].slope == (i < n ? x[i].slope : 8));
            }
        }
        const auto whole = simd::load(x.data());
        D total = 0, top = x[0];
        for (const D& each : x) {
            total += each;
            top = each > top ? each : top;
        }
        CHECK(near(simd::sum(whole), total));
        CHECK(simd::max(whole).value == top.value);
        CHECK(simd::max(whole).slope == top.slope);
        const auto filled = simd::fill_behind<D>(whole, 1, D(3, 4));
        CHECK(filled[0].slope == x[0].slope);
        CHECK(filled[L - 1].slope == 4);
    };
    check(float{});
    check(double{});
}

TEST_CASE("a 0 with a slope is not 0, and an infinite number has no slope")
{
    using D = dual_number<double>;
    constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(D(0, 0) == 0);
    CHECK(D(0, 1) != 0);
    CHECK(D(-infinity, nan) == -infinity);
    CHECK(D(nan, 0) != D(nan, 0));
    CHECK(!(D(0, 1) < 0));
    CHECK(D(1, 5) <= D(1, 3));
    CHECK(exp(D(-infinity, nan)) == 0);
    const auto lanes_of = [](D x) { return simd::vec<D>(x); };
    CHECK(!simd::any(lanes_of(D(0, 0)) != 0));
    CHECK(simd::any(lanes_of(D(0, 1)) != 0));
    CHECK(simd::any(lanes_of(D(-infinity, nan)) == -infinity));
    CHECK(simd::exp(lanes_of(D(-infinity, nan)))[0] == 0);
    CHECK(simd::sigmoid(lanes_of(D(-infinity, nan)))[0] == 0);
    CHECK(simd::sqrt(lanes_of(D(0, 0)))[0] == 0);
    CHECK((lanes_of(D(-infinity, 0)) * 2)[0].slope == 0);
}
