// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t N = 4, P = 4;

const auto z = random({N, P}, 21);

template <class Base>
auto counts(const Base& base)
{
    return attention{score::contextual_positions{base, z}, normalize::softmax{}, combine::weighted_sum{}};
}

/// The scores of Golovneva et al. 2024, section 4, in scalar loops, for query s at position `place`.
std::vector<double> by_hand(const array<double, 3>& h, const array<double, 3>& q, std::size_t b, std::size_t s,
                            std::size_t place, std::size_t n)
{
    const auto times = [&](std::size_t j) {
        double e = 0;
        for (std::size_t i = 0; i < N; ++i) e += q(b, s, i) * h(b, j, i);
        return e / 2;  // √N
    };
    const auto of_position = [&](std::size_t p) {
        double e = 0;
        for (std::size_t i = 0; i < N; ++i) e += q(b, s, i) * z(i, p);
        return e / 2;
    };
    std::vector<double> all;
    for (std::size_t j = 0; j < n; ++j) {
        double p = 0;
        for (std::size_t l = j; l <= place; ++l) p += 1 / (1 + std::exp(-times(l)));
        p = std::min(p, double{P - 1});
        const double low = std::floor(p), high = std::ceil(p);
        all.push_back(times(j) + (1 - (p - low)) * of_position(static_cast<std::size_t>(low)) +
                      (p - low) * of_position(static_cast<std::size_t>(high)));
    }
    return all;
}

}  // namespace

TEST_CASE("each query counts positions by its own gates: the paper's sums")
{
    const std::size_t S = 9, T = 7;  // the last queries are at the last position
    const auto h = random({2, T, N}, 1, 2), q = random({2, S, N}, 2, 2);
    const lengths real{T, 4};
    const auto attend = counts(score::scaled_dot{});
    const auto memory = attend.on(h, real);
    const auto all = attend.weights_of(memory, q);
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < S; ++s) {
        auto next = attend.step(memory, ops::step_of(q, s), state);
        for (std::size_t b = 0; b < 2; ++b) {
            const auto e = by_hand(h, q, b, s, std::min(s, real[b] - 1), real[b]);
            double sum = 0;
            for (const double x : e) sum += std::exp(x);
            for (std::size_t j = 0; j < T; ++j) {
                const double must = j < real[b] ? std::exp(e[j]) / sum : 0;
                CHECK(all(b, s, j) == support::approx(must));
                CHECK(next.weights(b, j) == support::approx(must));
            }
        }
        state = std::move(next.state);
    }
}

TEST_CASE("all at once, one by one, and over a growing memory")
{
    const std::size_t T = 12;
    const auto h = random({2, T, N}, 1), q = random({2, T, N}, 2);
    const auto check = [&](const auto& attend) {
        CHECK(support::distance_from_one_by_one(attend, causal{}, lengths{T, 5, 0}, T, T) < 1e-12);
        const auto all = attend(attend.on(h), q, causal{});
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}})
            CHECK(support::distance_where_it_grows(attend, h, q, all, chunk) < 1e-12);
    };
    check(counts(score::scaled_dot{}));
    check(attention{score::contextual_positions{score::general{random({N, N}, 5)}, z}, normalize::sigmoid{},
                    combine::weighted_sum{}});
    // Sentences of a KV cache may differ in length: each has its own query position.
    const auto attend = counts(score::dot{});
    const auto words = random({2, 6, N}, 3);
    const auto one = random({2, N}, 4);
    const lengths real{6, 3};
    const auto grown = with_cache(attend.on(words, real));
    auto state = attend.start(grown);
    state.step = 5;
    const auto both = attend.step(grown, one, state);
    const auto alone = counts(score::dot{}).on(support::words_of(words, 0, 3));
    auto of_three = attend.start(alone);
    of_three.step = 2;
    const auto must = attend.step(alone, one, of_three);
    for (std::size_t j = 0; j < 3; ++j) CHECK(both.weights(1, j) == support::approx(must.weights(1, j)));
}

TEST_CASE("a window counts only its positions")
{
    const auto h = random({1, 7, N}, 1), q = random({1, 7, N}, 2);
    const attention attend{score::contextual_positions{score::scaled_dot{}, z}, normalize::local_m{2},
                           combine::weighted_sum{}};
    auto state = attend.start(attend.on(h));
    for (std::size_t s = 0; s < 7; ++s) {
        auto next = attend.step(attend.on(h), ops::step_of(q, s), state);
        const auto e = by_hand(h, q, 0, s, s, 7);
        double sum = 0;
        for (std::size_t j = 0; j < 7; ++j) sum += j + 2 >= s && j <= s + 2 ? std::exp(e[j]) : 0;
        for (std::size_t j = 0; j < 7; ++j)
            CHECK(next.weights(0, j) == support::approx(j + 2 >= s && j <= s + 2 ? std::exp(e[j]) / sum : 0));
        state = std::move(next.state);
    }
}

TEST_CASE("gradients with respect to annotations, queries and positions; heads; the contracts; errors")
{
    const auto f = [&](const auto& h, const auto& q, const auto& positions) {
        const attention attend{score::contextual_positions{score::scaled_dot{}, positions}, normalize::softmax{},
                               combine::weighted_sum{}};
        return attend(attend.on(h), q, causal{});
    };
    const auto annotations = random({2, 5, 2}, 1), queries = random({2, 5, 2}, 2);
    const auto positions = random({2, 3}, 3);
    for (const auto& found : {support::gradient_of<0b111>(f, annotations, queries, positions),
                              support::gradient_of<0b100>(f, annotations, queries, positions),
                              support::gradient_of<0b010>(f, annotations, queries, positions)})
        CHECK_MESSAGE(bool(found), found.text());

    const auto h = random({2, 9, N}, 1), q = random({2, 9, N}, 2);
    const multi_head attend{std::vector{counts(score::scaled_dot{}), counts(score::scaled_dot{})}, random({N, 8}, 3),
                            random({N, 8}, 4), random({N, 8}, 5), random({8, N}, 6)};
    CHECK(support::distance_where_it_grows(attend, h, q, attend(attend.on(h), q, causal{}), 4) < 1e-12);

    const auto report = verify(counts(score::scaled_dot{}), {.query = N, .width = N});
    CHECK_MESSAGE(bool(report), report.text());
    const attention wide{score::contextual_positions{score::dot{}, random({N + 1, P}, 1)}, normalize::softmax{},
                         combine::weighted_sum{}};
    CHECK_THROWS_AS((void)wide(wide.on(h), q), shape_error);
    CHECK_THROWS_WITH_AS(
        (void)ops::add_contextual_positions(random({2, 3}, 1), random({2, 0}, 1), lengths{1, 1}, lengths_view{}),
        doctest::Contains("at least one column, for position 0"), shape_error);
    CHECK_THROWS_WITH_AS(
        (void)ops::add_contextual_positions(random({2, 3}, 1), random({2, 2}, 1), lengths{1}, lengths_view{}),
        doctest::Contains("each row has a count"), shape_error);
}

TEST_CASE("the operation: scores far apart, float, and clipped positions")
{
    const lengths up_to{3, 2}, begin{0, 1};
    const auto op = [&](const auto& e, const auto& table) {
        return ops::add_contextual_positions(e, table, up_to, begin);
    };
    CHECK_GRADIENT(op, random({2, 4}, 1), random({2, 3}, 2));
    CHECK_GRADIENT(op, random({2, 4}, 1), random({2, 1}, 2));  // only position 0
    const auto y = op(array<float, 2>{{1e4f, -1e4f, 1e4f, 0}, {0, 0, 0, 0}}, array<float, 2>{{0, 1, 3}, {0, 1, 3}});
    CHECK(y(0, 0) == 1e4f + 3);  // two gates are open
    CHECK(y(0, 1) == -1e4f + 1);
    CHECK(y(0, 2) == 1e4f + 1);
    CHECK(y(0, 3) == 0);                     // after the query
    CHECK(y(1, 0) == support::approx(0.5));  // one key from 1 on, with a gate of 1/2
    CHECK(y(1, 1) == 0);
}

TEST_CASE("a KV cache: a query before the first key of a sentence is refused")
{
    const auto attend = counts(score::scaled_dot{});
    const auto memory = with_cache(attend.on(random({2, 3, N}, 1), lengths{3, 1}));
    CHECK_THROWS_AS((void)attend.step(memory, random({2, N}, 2), attend.start(memory)), shape_error);
    CHECK_NOTHROW((void)attend.step(memory, random({2, N}, 2), from_query(attend.start(memory), 2)));
}
