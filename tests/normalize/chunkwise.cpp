// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/chunkwise.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/monotonic.hpp>

using namespace heed;
using support::random;
using namespace support::monotonic;

TEST_CASE("chunkwise weights are the printed sums, for any width and any inner weights")
{
    const auto soft = [](const numbers& e, const numbers& before) { return expected(e, r(0), before); };
    for (const std::size_t w : {1u, 2u, 3u, 4u, 7u, 8u, 1000u}) {
        check_everywhere(normalize::chunkwise{w, s, normalize::monotonic{r}}, soft,
                         [w](const numbers& e, const numbers& alpha) { return in_chunks(alpha, e, s(0), w); });
    }
    const auto softmax = [](const numbers& e, const numbers&) {
        numbers a(e.size(), 0.0);
        double sum = 0;
        for (std::size_t j = 0; j < e.size(); ++j) sum += a[j] = std::exp(e[j]);
        for (double& x : a) x = sum > 0 ? x / sum : 0;
        return a;
    };
    check_everywhere(normalize::chunkwise{3, s, normalize::softmax{}}, softmax,
                     [](const numbers& e, const numbers& alpha) { return in_chunks(alpha, e, s(0), 3); });
}

namespace {

/// A scan that counts evaluations of its weights.
template <class Scan>
struct counted_scan {
    Scan scan;
    int* count;

    auto start(auto&& blank) const { return scan.start(blank); }
    auto operator()(const auto& scores, const auto& before, const auto& at) const
    {
        ++*count;
        return scan(scores, before, at);
    }
    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& before, const auto& at) const
    {
        return scan.advance(scores, weights, before, at);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        auto scan = visit("scan", self.scan);
        return counted_scan<decltype(scan)>{std::move(scan), self.count};
    }
};

}  // namespace

TEST_CASE("chunkwise: a step scans once, and returns the weights and state of two separate calls")
{
    int count = 0;
    const normalize::chunkwise policy{3, s, counted_scan<normalize::monotonic<array<double, 1>>>{{r}, &count}};
    const attention attend{score::dot{}, policy, combine::weighted_sum{}};
    const auto h = random({1, 6, 4}, 1);
    const auto q = random({1, 4}, 2);
    const auto memory = attend.on(h);
    (void)attend.step(memory, q, attend.start(memory));
    CHECK(count == 1);
    const auto e = random({2, 6}, 3), before = random({2, 6}, 4);
    const lengths real{6, 4};
    const plain_step_context at{real};
    const normalize::past_attention state{before};
    const auto both = weigh_with_next(policy, e, state, at);
    const auto weights = weigh(policy, e, state, at);
    CHECK(support::same_bits(both.weights, weights));
    CHECK(support::same_bits(both.next.history, next_of(policy, e, weights, state, at).history));
}

TEST_CASE(
    "chunkwise: a chunk of 1 gives the inner weights, a scale of 0 their mean over the chunk, and the sum is kept")
{
    const auto e = random({3, 9}, 1, 2.0), alpha = random({3, 9}, 2);
    const lengths real{9, 5, 0};
    const auto one = ops::mocha(alpha, e, s, 1, real);
    for (std::size_t j = 0; j < 5; ++j) CHECK(one(1, j) == doctest::Approx(alpha(1, j)).epsilon(1e-15));
    const auto mean = ops::mocha(array<double, 2>{{0, 0, 0, 1, 0}}, array<double, 2>{{5, 1, 7, -2, 3}},
                                 array<double, 1>{0.0}, 2, lengths{5});
    CHECK(support::same_bits(mean, array<double, 2>{{0, 0, 0.5, 0.5, 0}}));
    const auto three = ops::mocha(alpha, e, s, 3, real);
    for (std::size_t b = 0; b < 2; ++b) {
        double is = 0, must = 0;
        for (std::size_t j = 0; j < real[b]; ++j) is += three(b, j), must += alpha(b, j);
        CHECK(is == doctest::Approx(must).epsilon(1e-13));
    }
    CHECK_THROWS_WITH_AS(ops::mocha(alpha, e, s, 0, real), doctest::Contains("at least 1"), error);
}

TEST_CASE("chunkwise: windows far below others, large scores of both signs, and infinite scores")
{
    // Relative to the row's maximum the second half would be 0/0.
    array<float, 2> e(shape_of_rank<2>{1, 8}), alpha(shape_of_rank<2>{1, 8}, 0.125F);
    for (std::size_t j = 0; j < 8; ++j) e(0, j) = (j < 4 ? 1e4F : -1e4F) + static_cast<float>(j % 3);
    numbers exact;
    for (const float x : e) exact.push_back(static_cast<double>(x));
    for (const float scale : {1.0F, -1.0F, 2.0F}) {
        for (const std::size_t w : {2u, 3u, 8u}) {
            const auto is = ops::mocha(alpha, e, array<float, 1>{scale}, w, lengths{8});
            const auto must = in_chunks(numbers(8, 0.125), exact, static_cast<double>(scale), w);
            for (std::size_t j = 0; j < 8; ++j) { CHECK(std::abs(static_cast<double>(is(0, j)) - must[j]) < 1e-6); }
        }
    }
    const float end = std::numeric_limits<float>::infinity(), great = std::numeric_limits<float>::max();
    for (const float scale : {2.0F, -2.0F, 0.0F}) {
        const array<float, 2> wild{{end, great, -great, -end, 0, -end, end, 1}};
        CHECK(support::all_finite(ops::mocha(alpha, wild, array<float, 1>{scale}, 3, lengths{8})));
    }
    const array<float, 2> hidden(shape_of_rank<2>{1, 8}, -end);
    for (const float x : ops::mocha(alpha, hidden, array<float, 1>{-1}, 3, lengths{8})) CHECK(x == 0);
}

TEST_CASE("chunkwise: gradients with respect to weights, scores and scale, and through the state of several steps")
{
    const lengths real{7, 0, 1, 4};
    for (const std::size_t w : {1u, 2u, 3u, 9u}) {
        const auto f = [&](const auto& alpha, const auto& e, const auto& scale) {
            return ops::mocha(alpha, e, scale, w, real);
        };
        CHECK_GRADIENT(f, random({4, 7}, 1), random({4, 7}, 2), s);
        const auto each = support::gradient_of<0b111>(f, random({4, 7, 3}, 3), random({4, 7, 3}, 4), s);
        CHECK_MESSAGE(bool(each), each.text());
    }
    const auto seen = every_third_hidden(4, 7);
    const auto steps = [&](const auto& one, const auto& two, const auto& three, const auto& bias, const auto& scale) {
        const normalize::chunkwise policy{3, scale, normalize::monotonic{bias}};
        const auto zeros = [&](double x) { return constant_like(one, shape_of(one), x); };
        const auto start = start_of(policy, zeros);
        const masked_moment now{real, 0, seen}, then{real, 1, seen}, last{real, 2, seen};
        const auto after = next_of(policy, one, weigh(policy, one, start, now), start, now);
        const auto second = weigh(policy, two, after, then);
        return ops::add(second, weigh(policy, three, next_of(policy, two, second, after, then), last));
    };
    const auto found =
        support::gradient_of<0b11111>(steps, random({4, 7}, 7), random({4, 7}, 8), random({4, 7}, 9), r, s);
    CHECK_MESSAGE(bool(found), found.text());
}

TEST_CASE("weight before a window moves into it, with any history in the window")
{
    // A window of 3 positions moves by one at each step. Weight at positions that left the window is passed on, not
    // lost.
    const std::size_t T = 7, steps = 6;
    const auto W = random({3, 3}, 1);
    const auto h = random({1, T, 3}, 2);
    const auto check = [&](const auto& window) {
        const attention attend{score::general{W}, window, combine::weighted_sum{}};
        const auto memory = attend.on(h);
        auto state = attend.start(memory);
        numbers before(T, 0.0);
        before[0] = 1;
        for (std::size_t t = 0; t < steps; ++t) {
            const auto query = random({1, 3}, 40 + t);
            const auto e = attend.score(query, memory.keys);
            numbers scores(T, none);
            for (std::size_t j = t < 1 ? 0 : t - 1; j <= std::min(t + 1, T - 1); ++j) scores[j] = e(0, j);
            before = expected(scores, r(0), before);
            const auto seen = attend.step(memory, query, state);
            for (std::size_t j = 0; j < T; ++j) CHECK(std::abs(seen.weights(0, j) - before[j]) < 1e-14);
            state = seen.state;
        }
        double sum = 0;
        for (const double x : before) sum += x;
        CHECK(sum > 0.01);
    };
    check(normalize::local_m{1, normalize::monotonic{r}});
    check(normalize::local_m{1, normalize::monotonic{r}, normalize::history::in_window{}});
}
