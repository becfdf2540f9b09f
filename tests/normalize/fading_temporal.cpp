// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/fading_temporal.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <limits>

using namespace heed;
using support::check_empty, support::message_of, support::random;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("discount_by and fade are discount and logaddexp with a number each")
{
    const auto e = random({3, 7}, 1), L = random({3, 7}, 2);
    CHECK(support::same_bits(ops::discount_by(e, L, 1), ops::discount(e, L)));
    CHECK(support::same_bits(ops::discount_by(e, L, 0), e));
    CHECK(support::same_bits(ops::fade(L, e, 0), ops::logaddexp(L, e)));
    CHECK(support::same_bits(ops::fade(L, e, infinity), e));
    const auto by = ops::discount_by(e, L, 0.3), faded = ops::fade(L, e, 0.7);
    for (std::size_t i = 0; i < e.size(); ++i) {
        CHECK(by.data()[i] == doctest::Approx(e.data()[i] - 0.3 * L.data()[i]).epsilon(1e-14));
        CHECK(faded.data()[i] ==
              doctest::Approx(std::log(std::exp(L.data()[i] - 0.7) + std::exp(e.data()[i]))).epsilon(1e-14));
    }
    for (const double number : {0.0, 0.6, 1.0, 3.0}) {
        const auto f = [number](const auto& a, const auto& b) { return ops::discount_by(a, b, number); };
        const auto g = [number](const auto& a, const auto& b) { return ops::fade(a, b, number); };
        CHECK_GRADIENT(f, random({1}, 3), random({1}, 4));
        CHECK_GRADIENT(f, random({2, 3, 9}, 5), random({2, 3, 9}, 6));
        CHECK_GRADIENT(g, random({1}, 3), random({1}, 4));
        CHECK_GRADIENT(g, random({2, 3, 9}, 5), random({2, 3, 9}, 6));
        check_empty(f, random({0, 3}, 7), random({0, 3}, 8));
        check_empty(g, random({0, 3}, 7), random({0, 3}, 8));
    }

    // No history is no history at any strength, and has no gradient; nor has what is forgotten at once.
    const array<double, 1> none{-infinity, -infinity}, scores{0.5, -infinity}, past{2.0, -infinity};
    ad::tape<double> on;
    const auto a = on.parameter(none), s = on.parameter(scores), p = on.parameter(past);
    for (const double strength : {0.0, 0.4, -1.0}) {
        CHECK(support::same_bits(ops::discount_by(s, a, strength), scores));
        CHECK(support::same_bits(ops::discount_by(scores, none, strength), scores));
    }
    CHECK(support::same_bits(ops::fade(a, s, 0.4), scores));
    const auto y = ops::add(ops::discount_by(s, a, 0.4), ops::fade(p, s, infinity));
    on.backward(ops::inner(ops::exp(y), array<double, 1>{2.0, 3.0}));
    for (const auto& x : {a, p}) {
        for (std::size_t i = 0; i < 2; ++i) CHECK(on.gradient(x).data[i] == 0);
    }
    CHECK(on.gradient(s).data[0] == support::approx(4 * std::exp(1.0)));
    CHECK(on.gradient(s).data[1] == 0);

    CHECK(message_of<shape_error>([&] {
              (void)ops::discount_by(e, random({3, 6}, 1), 1);
          }) == "discount_by: the history is [3,6] but must be [3,7] (the shape of the scores)");
    CHECK(message_of<shape_error>([&] {
              (void)ops::fade(random({3, 6}, 1), on.parameter(e), 1);
          }) == "fade: what joins the history is [3,7] but must be [3,6] (the shape of the history)");
}
