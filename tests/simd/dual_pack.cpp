// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/dual_pack.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <support/dual_numbers.hpp>

namespace {

using namespace heed;
using namespace heed::test;

}  // namespace

TEST_CASE("lanes of dual numbers, their functions, and derivatives with respect to a score")
{
    const auto check = [](auto element) {
        using T = decltype(element);
        using D = dual_number<T>;
        const auto x = dual_numbers<T>(lane_count), y = dual_numbers<T>(lane_count, 0.5);
        const auto a = detail::load_lanes(x.data()), b = detail::load_lanes(y.data());
        std::vector<D> back(lane_count);
        detail::store_lanes(back.data(), a);
        for (std::size_t i = 0; i < lane_count; ++i) CHECK(back[i].slope == x[i].slope);
        const auto f = [](auto e, auto c) {
            using std::exp, std::log, std::tanh, std::sqrt, std::sin, std::cos, std::abs;
            return tanh(e * c) / (2 + sqrt(abs(c - e))) + 3 * exp(-e) * log(c + 1) - sin(e) * cos(c);
        };
        const auto of_lanes = f(a, b);
        for (std::size_t i = 0; i < lane_count; ++i) CHECK(near(of_lanes[i], f(x[i], y[i])));
        // With respect to the score: ∂f/∂e and its slope, compared with a difference in double.
        const dual<D> by_score = f(dual<D>(a, 1), b);
        const double h = 1e-5;
        for (std::size_t i = 0; i < lane_count; ++i) {
            const dual_number<double> e(x[i]), c(y[i]);
            const auto above = f(e + h, c), below = f(e - h, c);
            const double most = 2e-4;
            CHECK(static_cast<double>(by_score.slope[i].value) ==
                  doctest::Approx((above.value - below.value) / (2 * h)).epsilon(most));
            CHECK(static_cast<double>(by_score.slope[i].slope) ==
                  doctest::Approx((above.slope - below.slope) / (2 * h)).epsilon(most));
        }
        const auto chosen = select(a > b, a, T(2));
        for (std::size_t i = 0; i < lane_count; ++i) CHECK(chosen[i].slope == (x[i] > y[i] ? x[i].slope : T(0)));
        // Integers and plain scores have no slope.
        const auto mixed = a * pack<std::int32_t>(3) + pack<T>(T(0.5));
        for (std::size_t i = 0; i < lane_count; ++i) CHECK(near(mixed[i], 3 * x[i] + T(0.5)));
    };
    check(float{});
    check(double{});
}

TEST_CASE("lanes: a 0 with a slope is not 0")
{
    using D = dual_number<double>;
    CHECK((pack<D>(D(0, 1)) != 0).at[0] != 0);
    CHECK((pack<D>(D(0, 0)) != 0).at[0] == 0);
}
