// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/recent_temporal.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/mechanism_tests.hpp>
#include <support/scalar_weights.hpp>
#include <support/temporal_family.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::check_empty, support::random;
using support::message_of, support::random;
using support::plain_query, support::query_with_word;
namespace scalar = support::scalar;
using namespace support::temporal_family;

TEST_CASE("recent_sums: over the last 1, 2, ..., n steps, with all gradients")
{
    // Two positions with two scores each, n = 3, computed manually.
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
        enum { newest, kept, both };
        for (const auto which : {newest, kept, both}) {
            const auto f = [=](const auto& s, const auto& x) {
                const auto [sum, rest] = ops::recent_sums(s, x, n);
                return which == newest ? sum : which == kept ? rest : ops::concat(ops::multiply(sum, sum), rest);
            };
            if (n > 1) {
                CHECK_GRADIENT(f, random({1, 1, n - 1}, 3), random({1, 1, 1}, 4));
                CHECK_GRADIENT(f, random({2, 3, (n - 1) * 9}, 3), random({2, 3, 9}, 4));
            }
            check_empty(f, random({2, 0, n - 1}, 3), random({2, 0, 1}, 4));
        }
        const auto of_scores = [n](const auto& x) { return ops::recent_sums(random({2, 3, n - 1}, 3), x, n).first; };
        CHECK_GRADIENT(of_scores, random({2, 3}, 4));
    }

    // With n = 0, or before the first step, the sums are -inf and have no gradient.
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
    on.backward(ops::dot(ops::exp(y), array<double, 2>{{2.0, 3.0}}));
    for (std::size_t i = 0; i < 2; ++i) CHECK(on.gradient(a).data[i] == 0);
    CHECK(on.gradient(s).data[0] == support::approx(2 * std::exp(0.5)));
    CHECK(on.gradient(s).data[1] == 0);
}

TEST_CASE("recent_temporal matches its equation, for any n")
{
    for (const std::size_t n : {0u, 1u, 2u, 3u, 5u, 11u, 12u, 40u}) {
        check_values(normalize::recent_temporal{n}, scalar::temporal(1, 0, n));
    }
}

TEST_CASE("recent_temporal satisfies the contracts")
{
    check_mechanism(normalize::recent_temporal{2});
    check_verified(dot_with(normalize::recent_temporal{0}), plain_query{5});
    check_verified(dot_with(normalize::recent_temporal{1}), plain_query{5});
}

TEST_CASE("the sums over the last n steps: long runs, the same tensors at every step")
{
    // A sum that subtracts old steps would lose its small terms: every step is e^40 or e^-40 times the previous step.
    auto e = random_scores({1, 3}, 60, 1);
    for (std::size_t t = 0; t < 60; ++t) {
        for (std::size_t j = 0; j < 3; ++j) e[t](0, j) += (t / 3 + j) % 2 == 0 ? 20 : -20;
    }
    const auto real = lengths{3};
    for (const std::size_t n : {1u, 2u, 3u, 4u, 7u, 16u}) {
        const normalize::recent_temporal recent{n};
        CHECK(distance(scalar::weights_of(recent, e, real), scalar::weights_of(scalar::temporal(1, 0, n), e, real)) <
              1e-13);
        auto state = recent.start([&](double x) { return constant_like(e[0], shape_of(e[0]), x); });
        for (std::size_t t = 0; t < 60; ++t) {
            std::vector<shape_of_rank<3>> shapes;
            (void)state.map([&](const auto& x) {
                const auto shape = shape_of(x);
                shapes.push_back({shape[0], shape[1], shape.size() == 3 ? shape.back() : 1});
                return x;
            });
            CHECK(shapes == std::vector<shape_of_rank<3>>{{1, 3, 1}, {1, 3, n - 1}});
            state = recent.advance(e[t], e[t], state, plain_step_context{real, t});
        }
    }
}
