// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include <heed/simd/simd.hpp>

#include "support/special_values.hpp"

// NaN, infinities, zeros and subnormal numbers in each lane of a register and in each place of a remainder, against the
// standard library's scalar functions: the same for any kind of register.

namespace {

using namespace heed;
using heed::test::agree;
using heed::test::special_values;

/// f over arrays that hold a special value in one place: correct there, and elsewhere the same bits as without it.
template <class T, class F, class Exact>
void check_everywhere(const char* what, double units, F f, Exact exact)
{
    INFO(what);
    for (const std::size_t n : test::awkward_sizes(simd::lanes<T>)) {
        std::vector<T> plain(n, T(0.5)), undisturbed(n);
        simd::transform(n, undisturbed.data(), f, plain.data());
        for (const T value : special_values<T>()) {
            for (std::size_t at = 0; at < n; ++at) {
                std::vector<T> x = plain, y(n);
                x[at] = value;
                simd::transform(n, y.data(), f, x.data());
                CAPTURE(value);
                CAPTURE(at);
                CAPTURE(y[at]);
                REQUIRE(agree(y[at], exact(value), units));
                y[at] = undisturbed[at];
                REQUIRE(std::memcmp(y.data(), undisturbed.data(), n * sizeof(T)) == 0);
            }
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("functions of one number", T, float, double)
{
    const T nan = std::numeric_limits<T>::quiet_NaN();
    check_everywhere<T>(
        "exp", 2, [](auto x) { return simd::exp(x); }, [](T x) { return std::exp(x); });
    check_everywhere<T>(
        "tanh", 5, [](auto x) { return simd::tanh(x); }, [](T x) { return std::tanh(x); });
    check_everywhere<T>(
        "log", 3, [](auto x) { return simd::log(x); }, [nan](T x) { return x < 0 ? nan : std::log(x); });
    check_everywhere<T>(
        "log1p of the magnitude", 4,
        [](auto x) { return simd::log1p(simd::select(x <= simd::splat(T(0)), simd::splat(T(0)) - x, x)); },
        [](T x) { return std::log1p(x <= 0 ? T(0) - x : x); });
    check_everywhere<T>(
        "sigmoid", 4, [](auto x) { return simd::sigmoid(x); }, [](T x) { return 1 / (1 + std::exp(-x)); });
    check_everywhere<T>(
        "normal_cdf", 128, [](auto x) { return simd::normal_cdf(x); },
        [](T x) { return std::erfc(-x / std::sqrt(T(2))) / 2; });
    check_everywhere<T>(
        "sin", 2.5, [](auto x) { return simd::sin(x); }, [](T x) { return std::sin(x); });
    check_everywhere<T>(
        "cos", 2.5, [](auto x) { return simd::cos(x); }, [](T x) { return std::cos(x); });
    check_everywhere<T>(
        "sqrt", 0, [](auto x) { return simd::sqrt(x); }, [](T x) { return std::sqrt(x); });
    check_everywhere<T>(
        "load and store", 0, [](auto x) { return x; }, [](T x) { return x; });
    for (const T value : special_values<T>()) {
        for (std::size_t lane = 0; lane < simd::lanes<T>; ++lane) CHECK(agree(simd::splat(value)[lane], value));
    }
}

TEST_CASE_TEMPLATE("min, max, select and fma", T, float, double)
{
    for (const T b : special_values<T>()) {
        CAPTURE(b);
        check_everywhere<T>(
            "max", 0, [b](auto x) { return simd::max(x, simd::splat(b)); }, [b](T x) { return x > b ? x : b; });
        check_everywhere<T>(
            "min", 0, [b](auto x) { return simd::min(x, simd::splat(b)); }, [b](T x) { return x < b ? x : b; });
        check_everywhere<T>(
            "select", 0, [b](auto x) { return simd::select(x < simd::splat(T(0)), simd::splat(b), x); },
            [b](T x) { return x < 0 ? b : x; });
        check_everywhere<T>(
            "fma, times 1", 0, [b](auto x) { return simd::fma(x, simd::splat(T(1)), simd::splat(b)); },
            [b](T x) { return std::fma(x, T(1), b); });
    }
    check_everywhere<T>(
        "fma, times 0", 0, [](auto x) { return simd::fma(x, simd::splat(T(0)), simd::splat(T(1))); },
        [](T x) { return std::fma(x, T(0), T(1)); });
}

TEST_CASE_TEMPLATE("functions of a whole register see each lane", T, float, double)
{
    constexpr std::size_t n = simd::lanes<T>;
    for (const T value : special_values<T>()) {
        for (std::size_t lane = 0; lane < n; ++lane) {
            CAPTURE(value);
            CAPTURE(lane);
            simd::vec<T> v = simd::splat(T(-3));
            v[lane] = value;
            CHECK(simd::any(v > simd::splat(T(-3))) == (value > T(-3)));
            CHECK(simd::any(v != v) == std::isnan(value));
            CHECK(simd::any(~(v <= simd::splat(T(0)))) == !(value <= 0));
            if (!std::isnan(value)) CHECK(simd::max(v) == (value > T(-3) ? value : T(-3)));
            simd::vec<T> zeros{};
            zeros[lane] = value;
            CHECK(agree(simd::sum(zeros) + T(1), value + T(1)));

            T memory[n];
            simd::store(memory, v);
            for (std::size_t count = 0; count < n; ++count) {
                const simd::vec<T> part = simd::load(memory, count), filled = simd::fill_behind<T>(v, count, T(7));
                CHECK(agree(part[lane], lane < count ? value : T(0)));
                CHECK(agree(filled[lane], lane < count ? value : T(7)));
                T to[n] = {};
                simd::store(to, v, count);
                CHECK(agree(to[lane], lane < count ? value : T(0)));
            }
        }
    }
}
