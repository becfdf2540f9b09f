// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>

#include <cmath>
#include <vector>

using namespace heed;
using support::distance;
using support::random;
using support::words_of;

namespace {

constexpr std::size_t N = 6;

/// One vector rotated in scalar code.
std::vector<double> turned(std::vector<double> x, std::size_t position, const ops::rotation& how)
{
    std::vector<double> y = x;
    const std::size_t width = how.width == 0 ? N : how.width;
    for (std::size_t m = 0; m < width / 2; ++m) {
        const bool halves = how.pairs == ops::turned_pairs::halves;
        const std::size_t a = halves ? m : 2 * m, b = halves ? m + width / 2 : 2 * m + 1;
        const double angle = static_cast<double>(position) *
                             std::pow(how.base, -2.0 * static_cast<double>(m) / static_cast<double>(width));
        y[a] = std::cos(angle) * x[a] - std::sin(angle) * x[b];
        y[b] = std::sin(angle) * x[a] + std::cos(angle) * x[b];
    }
    return y;
}

/// Checks all at once, one by one, and a growing memory, by one word and by several.
void check(const auto& attend, std::size_t T)
{
    const auto h = random({2, T, N}, 1), q = random({2, T, N}, 2);
    const auto memory = attend.on(h);
    const auto all = attend(memory, q, causal{});
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}})
        CHECK(support::distance_where_it_grows(attend, h, q, all, chunk) < 1e-12);
    auto state = attend.start(memory);
    for (std::size_t t = 0; t < T; ++t) {
        auto next = attend.step(memory, ops::step_of(q, t), state, lengths({t + 1, t + 1}));
        CHECK(distance(next.context, ops::step_of(all, t)) < 1e-12);
        state = std::move(next.state);
    }
}

auto with(const auto& score) { return attention{score, normalize::softmax{}, combine::weighted_sum{}}; }

}  // namespace

TEST_CASE("pairs of numbers are rotated by their position")
{
    const auto x = random({2, 5, N}, 1);
    for (const ops::rotation how : {ops::rotation{},
                                    {100, ops::turned_pairs::halves},
                                    {.base = 100, .width = 4},
                                    {100, ops::turned_pairs::halves, 4}}) {
        const auto y = ops::rotate(x, 3, how);
        for (std::size_t t = 0; t < 5; ++t) {
            std::vector<double> of;
            for (std::size_t i = 0; i < N; ++i) of.push_back(x(1, t, i));
            const auto must = turned(of, 3 + t, how);
            for (std::size_t i = 0; i < N; ++i) CHECK(y(1, t, i) == support::approx(must[i]));
        }
        const auto f = [&](const auto& v) { return ops::rotate(v, 3, how); };
        CHECK_GRADIENT(f, x);
        CHECK_GRADIENT(f, random({3, N}, 2));
    }
    CHECK_THROWS_WITH_AS(ops::rotate(random({2, 5}, 1), 0, ops::rotation{}), doctest::Contains("the size must be even"),
                         shape_error);
}

TEST_CASE("a slice of each vector is rotated: the scores equal those of manually rotated vectors")
{
    const ops::rotation how{100, ops::turned_pairs::halves, 4};
    const auto h = random({2, 5, N}, 1), q = random({2, 5, N}, 2);
    const auto by_hand = [&](const array<double, 3>& x) {
        array<double, 3> y = x;
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t t = 0; t < 5; ++t) {
                std::vector<double> of;
                for (std::size_t i = 0; i < N; ++i) of.push_back(x(b, t, i));
                const auto must = turned(of, t, how);
                for (std::size_t i = 0; i < N; ++i) y(b, t, i) = must[i];
            }
        }
        return y;
    };
    const auto attend = with(score::rotary{score::dot{}, how});
    const auto plain = with(score::dot{});
    const auto memory = attend.on(h);
    auto state = attend.start(memory);
    const auto keys = plain.on(by_hand(h));
    const auto queries = by_hand(q);
    for (std::size_t t = 0; t < 5; ++t) {
        auto next = attend.step(memory, ops::step_of(q, t), state);
        const auto must = plain.step(keys, ops::step_of(queries, t), plain.start(keys)).weights;
        CHECK(distance(next.weights, must) < 1e-12);
        state = std::move(next.state);
    }
    const auto unequal = with(score::rotary{score::dot{}, {.width = 3}});
    CHECK_THROWS_WITH_AS(unequal.on(h), doctest::Contains("rotate: a width of 3 for vectors of size 6"), shape_error);
    const auto wide = with(score::rotary{score::dot{}, {.width = 8}});
    CHECK_THROWS_WITH_AS(wide.on(h), doctest::Contains("rotate: a width of 8 for vectors of size 6"), shape_error);
}

TEST_CASE("only distances matter")
{
    const auto attend = with(score::rotary{score::dot{}});
    const auto h = random({1, 4, N}, 1);
    const auto q = random({1, N}, 2);
    auto here = attend.start(attend.on(h)), there = here;
    here.step = 2;
    there.step = 9;
    const lengths seven{7};
    const detail::memory_by make{attend, seven};
    const auto later = detail::from_source("a test", make, h);
    const auto a = attend.step(attend.on(h), q, here).weights, b = attend.step(later, q, there).weights;
    const auto c = attend.step(attend.on(h), q, there).weights;
    CHECK(distance(a, b) < 1e-12);
    CHECK(distance(a, c) > 1e-3);
}

TEST_CASE("all at once, one by one, and over a growing memory")
{
    const auto capped = [](auto e, score_index p) { return 2 * tanh(e / 2) - 0.01 * abs(p.query - p.key); };
    for (const std::size_t T : {std::size_t{7}, std::size_t{70}}) {  // without and with tiles
        check(with(score::rotary{score::scaled_dot{}}), T);
        check(with(score::rotary{score::scaled_dot{}, {100, ops::turned_pairs::halves}}), T);
        check(with(score::rotary{score::scaled_dot{}, {.base = 100, .width = 4}}), T);
        check(with(score::rotary{score::scaled_dot{}, {100, ops::turned_pairs::halves, 2}}), T);
        check(with(score::modified{score::rotary{score::dot{}}, capped}), T);
        check(attention{score::rotary{score::scaled_dot{}}, normalize::retention{0.9}, combine::weighted_sum{}}, T);
        check(multi_head{std::vector(2, with(score::rotary{score::scaled_dot{}})), random({N, 8}, 3), random({N, 4}, 4),
                         random({N, 4}, 5), random({8, N}, 6)},
              T);
        const auto of_first = with(score::rotary{score::scaled_dot{}, {.width = 2}});
        check(multi_head{std::vector(2, of_first), random({N, 8}, 3), random({N, 4}, 4), random({N, 4}, 5),
                         random({8, N}, 6)},
              T);
    }
    check(with(score::rotary{score::general{random({N, N}, 5)}}), 7);
    check(with(score::rotary{score::additive{random({N, 4}, 5), random({N, 4}, 6), random({4}, 7)}}), 7);
}

TEST_CASE("gradients through rotated queries and keys")
{
    for (const std::size_t T : {std::size_t{5}, std::size_t{65}}) {
        const auto f = [&](const auto& h, const auto& q) {
            const auto attend = with(score::rotary{score::scaled_dot{}});
            return attend(attend.on(h), q, causal{});
        };
        CHECK_GRADIENT(f, random({1, T, 2}, 1), random({1, T, 2}, 2));
    }
}
