// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/ad.hpp>
#include <heed/normalize/connected.hpp>
#include <heed/normalize/fading_temporal.hpp>
#include <heed/normalize/recent_temporal.hpp>
#include <heed/score/with_fertility.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <limits>

using namespace heed;
using support::check_empty, support::message_of, support::random;

// What is remembered of earlier scores and weights: values by hand, gradients by differences, errors by their words.

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

TEST_CASE("add_weighted")
{
    const array<double, 2> e{{1.0, 2.0}}, x{{10.0, -4.0}};
    CHECK(support::same_bits(ops::add_weighted(e, array<double, 1>{0.5}, x), array<double, 2>{{6.0, 0.0}}));
    const auto f = [](const auto& a, const auto& w, const auto& b) { return ops::add_weighted(a, w, b); };
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1}, 2), random({1, 1}, 3));
    CHECK_GRADIENT(f, random({3, 11}, 4), random({1}, 5), random({3, 11}, 6));
    CHECK_GRADIENT(f, random({2, 3, 5}, 7), random({1}, 8), random({2, 3, 5}, 9));
    check_empty(f, random({0, 3}, 1), random({1}, 2), random({0, 3}, 3));
    CHECK(message_of<shape_error>([&] { (void)f(e, random({2}, 1), x); }) ==
          "add_weighted: the weight is [2] but must be [1] (one number for all)");
    ad::tape<double> on;
    CHECK(message_of<shape_error>([&] {
              (void)f(on.parameter(e), random({1}, 1), random({1, 3}, 1));
          }) == "add_weighted: what is added is [1,3] but must be [1,2] (the shape of the first argument)");
}

TEST_CASE("add_share")
{
    const auto share = [](const auto& c, const auto& a, const auto& f) { return ops::add_share(c, a, f); };
    array<double, 2> fertility = random({2, 3}, 3);
    for (double& f : fertility) f = 0.5 + std::abs(f);
    CHECK_GRADIENT(share, random({2, 3}, 1), random({2, 3}, 2), fertility);
    CHECK(share(array<double, 2>{{1.0}}, array<double, 2>{{0.5}}, array<double, 2>{{2.0}})(0, 0) == 1.25);
    // A fertility that has underflowed: a great number, never a division by 0.
    CHECK(share(array<double, 2>{{0.0, 0.0}}, array<double, 2>{{0.0, 0.5}}, array<double, 2>{{0.0, 0.0}}) ==
          array<double, 2>{{0.0, 0.5 / 1e-6}});
    ad::tape<double> on;
    const array<double, 2> none{{0.0}}, half{{0.5}};
    const auto f = on.parameter(none), a = on.parameter(half);
    on.backward(ops::inner(share(none, a, f), array<double, 2>{{1.0}}));
    CHECK(on.gradient(f).data[0] == 0);
    CHECK(on.gradient(a).data[0] == support::approx(1e6));

    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                share(random({2, 3}, 1), random({2, 4}, 2), fertility);
                            }),
                            "the weights is [2,4] but must be [2,3]"));
}

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
