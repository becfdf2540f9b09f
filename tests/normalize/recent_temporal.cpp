// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/recent_temporal.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <limits>

using namespace heed;
using support::check_empty, support::random;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("recent_sums: over the last 1, 2, ..., n steps, and all of it has a gradient")
{
    // Two positions with two scores each, n = 3: by hand.
    const auto sums = random({1, 2, 4}, 1), e = random({1, 2, 2}, 2);
    const auto [last, next] = ops::recent_sums(sums, e, std::size_t{3});
    const auto join = [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); };
    for (std::size_t t = 0; t < 2; ++t) {
        for (std::size_t d = 0; d < 2; ++d) {
            CHECK(next(0, t, d) == e(0, t, d));
            CHECK(next(0, t, 2 + d) == doctest::Approx(join(sums(0, t, d), e(0, t, d))).epsilon(1e-14));
            CHECK(last(0, t, d) == doctest::Approx(join(sums(0, t, 2 + d), e(0, t, d))).epsilon(1e-14));
        }
    }
    for (const std::size_t n : {1u, 2u, 5u}) {
        const auto newest = [n](const auto& s, const auto& x) { return ops::recent_sums(s, x, n).first; };
        const auto kept = [n](const auto& s, const auto& x) { return ops::recent_sums(s, x, n).second; };
        const auto both = [n](const auto& s, const auto& x) {
            const auto made = ops::recent_sums(s, x, n);
            return ops::concat(ops::multiply(made.first, made.first), made.second);
        };
        if (n > 1) {
            CHECK_GRADIENT(newest, random({2, 3, n - 1}, 3), random({2, 3}, 4));
            CHECK_GRADIENT(kept, random({2, 3, (n - 1) * 9}, 3), random({2, 3, 9}, 4));
            CHECK_GRADIENT(both, random({1, 1, n - 1}, 3), random({1, 1, 1}, 4));
            CHECK_GRADIENT(both, random({2, 3, (n - 1) * 9}, 3), random({2, 3, 9}, 4));
        }
        CHECK_GRADIENT(([&](const auto& x) { return newest(random({2, 3, n - 1}, 3), x); }), random({2, 3}, 4));
        check_empty(both, random({2, 0, n - 1}, 3), random({2, 0, 1}, 4));
    }

    // Nothing at all is remembered; or nothing yet, from which nothing comes back.
    const array<double, 2> scores{{0.5, -infinity}};
    CHECK(
        support::same_bits(ops::recent_sums(array<double, 3>(shape_of_rank<3>{1, 2, 0}), scores, std::size_t{0}).first,
                           array<double, 2>{{-infinity, -infinity}}));
    const array<double, 3> none{{{-infinity}, {-infinity}}};
    ad::tape<double> on;
    const auto a = on.parameter(none);
    const auto s = on.parameter(scores);
    const auto y = ops::recent_sums(a, s, std::size_t{2}).first;
    CHECK(support::same_bits(y, scores));
    on.backward(ops::inner(ops::exp(y), array<double, 2>{{2.0, 3.0}}));
    for (std::size_t i = 0; i < 2; ++i) CHECK(on.gradient(a).data[i] == 0);
    CHECK(on.gradient(s).data[0] == support::approx(2 * std::exp(0.5)));
    CHECK(on.gradient(s).data[1] == 0);
}
