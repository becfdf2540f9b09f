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

constexpr std::size_t D = 4, n = 2, K = 2, V = 3, O = 5;
constexpr double init = 0.6;

const auto W_Q = random({D, 2 * n*K}, 1), W_K = random({D, 2 * n*K}, 2), W_V = random({D, n*V}, 3),
           W_O = random({n * V, O}, 4);
const auto q1 = random({K}, 5), k1 = random({K}, 6), q2 = random({K}, 7), k2 = random({K}, 8), gain = random({V}, 9);

auto head() { return attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}; }
auto with(const auto& one)
{
    return multi_head{std::vector(2 * n, one), W_Q, W_K, W_V, W_O, per_head::differential{q1, k1, q2, k2, gain, init}};
}

double times(const array<double, 3>& x, std::size_t t, const array<double, 2>& M, std::size_t column)
{
    double sum = 0;
    for (std::size_t i = 0; i < D; ++i) sum += x(0, t, i) * M(i, column);
    return sum;
}

double lambda()
{
    double one = 0, two = 0;
    for (std::size_t i = 0; i < K; ++i) one += q1(i) * k1(i), two += q2(i) * k2(i);
    return std::exp(one) - std::exp(two) + init;
}

/// softmax of map e of head h: query s over keys 0 … s.
std::vector<double> map_of(const array<double, 3>& x, std::size_t h, std::size_t e, std::size_t s)
{
    std::vector<double> a(s + 1);
    double sum = 0;
    for (std::size_t j = 0; j <= s; ++j) {
        double score = 0;
        for (std::size_t i = (2 * h + e) * K; i < (2 * h + e + 1) * K; ++i)
            score += times(x, s, W_Q, i) * times(x, j, W_K, i);
        sum += a[j] = std::exp(score / std::sqrt(double{K}));
    }
    for (double& w : a) w /= sum;
    return a;
}

std::vector<double> by_hand(const array<double, 3>& x, std::size_t s)
{
    std::vector<double> context(O);
    for (std::size_t h = 0; h < n; ++h) {
        const auto one = map_of(x, h, 0, s), two = map_of(x, h, 1, s);
        std::vector<double> c(V);
        double squares = 0;
        for (std::size_t i = 0; i < V; ++i) {
            for (std::size_t j = 0; j <= s; ++j) c[i] += (one[j] - lambda() * two[j]) * times(x, j, W_V, h * V + i);
            squares += c[i] * c[i] / V;
        }
        for (std::size_t i = 0; i < V; ++i) {
            const double normed = (1 - init) * gain(i) * c[i] / std::sqrt(squares + 1e-5);
            for (std::size_t o = 0; o < O; ++o) context[o] += normed * W_O(h * V + i, o);
        }
    }
    return context;
}

}  // namespace

TEST_CASE("the difference of two maps, normalized for each head, matches scalar loops")
{
    for (const std::size_t T : {std::size_t{5}, std::size_t{66}}) {  // without and with tiles
        const auto x = random({1, T, D}, 10);
        const auto attend = with(head());
        const auto is = attend(attend.on(x), x, causal{});
        for (std::size_t s = 0; s < T; s += 11) {
            const auto must = by_hand(x, s);
            for (std::size_t o = 0; o < O; ++o) CHECK(is(0, s, o) == support::approx(must[o]));
        }
    }
}

TEST_CASE("weights of a step, and their differences")
{
    const auto x = random({1, 5, D}, 10);
    const auto attend = with(head());
    const auto memory = attend.on(x);
    const auto seen = attend.step(memory, ops::step_of(x, 4), attend.start(memory));
    CHECK(shape_of(seen.weights) == shape_of_rank<3>{1, 2 * n, 5});
    const auto of_heads = attend.head_transform.weights(seen.weights);
    CHECK(shape_of(of_heads) == shape_of_rank<3>{1, n, 5});
    for (std::size_t h = 0; h < n; ++h) {
        const auto one = map_of(x, h, 0, 4), two = map_of(x, h, 1, 4);
        for (std::size_t j = 0; j < 5; ++j) CHECK(of_heads(0, h, j) == support::approx(one[j] - lambda() * two[j]));
    }
}

TEST_CASE("all at once, one by one, and over a growing memory")
{
    const auto check = [](const auto& attend, std::size_t T) {
        const auto x = random({2, T, D}, 10);
        const auto all = attend(attend.on(x), x, causal{});
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}}) {
            auto known = attend.on(words_of(x, 0, chunk));
            auto state = attend.start(known);
            for (std::size_t t = 0; t < T; t += chunk) {
                const std::size_t m = std::min(chunk, T - t);
                if (t > 0) known = attend.extend(known, words_of(x, t, m));
                auto some = attend.read_all(known, words_of(x, t, m), state, causal{});
                CHECK(distance(some.contexts, words_of(all, t, m)) < 1e-12);
                state = std::move(some.state);
            }
        }
        const auto memory = attend.on(x);
        auto state = attend.start(memory), composed = state;
        for (std::size_t t = 0; t < T; ++t) {
            const lengths seen({t + 1, t + 1});
            auto next = attend.step(memory, ops::step_of(x, t), state, seen);
            auto same = attend.compose(memory, ops::step_of(x, t), composed, seen);
            CHECK(distance(next.context, ops::step_of(all, t)) < 1e-12);
            CHECK(distance(same.context, ops::step_of(all, t)) < 1e-12);
            state = std::move(next.state);
            composed = std::move(same.state);
        }
    };
    for (const std::size_t T : {std::size_t{7}, std::size_t{70}}) {
        check(with(head()), T);
        check(with(attention{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}}), T);
    }
}

TEST_CASE("gradients with respect to input, matrices, lambda and gain")
{
    const auto f = [](const auto& x, const auto& W, const auto& l, const auto& g) {
        const multi_head attend{
            std::vector(2 * n, head()),
            W,
            W,
            ops::slice_columns(W, 0, 4),
            ops::transpose(ops::slice_columns(W, 4, 8)),
            per_head::differential{l, ops::scale(l, 0.5), ops::scale(l, -0.3), ops::square(l), g, init}};
        return attend(attend.on(x), x, causal{});
    };
    const auto together = [&](const auto& x, const auto& W, const auto& l) { return f(x, W, l, l); };
    CHECK_GRADIENT(together, random({2, 5, D}, 10), W_Q, random({2}, 11));
    CHECK_GRADIENT([](const auto& x, const auto& g) { return ops::rms_norm(x, g, 1e-5); }, random({2, 3, 6}, 1), gain);
}

TEST_CASE("an empty row gives 0, initial lambdas by layer, and shapes that do not fit")
{
    const auto x = random({2, 4, D}, 10);
    const auto attend = with(head());
    const auto none = attend(attend.on(x, lengths{4, 0}), x);
    for (std::size_t o = 0; o < O; ++o) CHECK(none(1, 2, o) == 0);
    CHECK(decltype(attend.head_transform)::init_of_layer(1) == support::approx(0.2));
    CHECK(decltype(attend.head_transform)::init_of_layer(3) == support::approx(0.8 - 0.6 * std::exp(-0.6)));
    CHECK_THROWS_WITH_AS(attend.head_transform(random({2, 4, 2 * n * V + 1}, 1), x),
                         doctest::Contains("a multiple of twice the gain's size"), shape_error);
    CHECK_THROWS_WITH_AS(ops::rms_norm(x, random({3}, 1), 1e-5), doctest::Contains("a gain of 3 numbers"), shape_error);
    auto odd = attend;
    odd.heads.pop_back();
    CHECK_THROWS_WITH_AS((void)odd.on(x), doctest::Contains("groups of 2 heads share values"), shape_error);
    auto wide = attend;
    wide.W_V = random({D, std::size_t{7}}, 3);
    CHECK_THROWS_WITH_AS((void)wide.on(x), doctest::Contains("W_V 2 times fewer"), shape_error);
}
