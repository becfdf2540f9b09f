// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

using namespace heed;
using support::distance;
using support::random;
using support::words_of;

namespace {

constexpr std::size_t D = 4, n = 3, V = 2, O = 5;

const auto W_Q = random({D, n*V}, 1), W_K = random({D, n*V}, 2), W_V = random({D, n*V}, 3), W_O = random({n * V, O}, 4),
           P_l = random({n, n}, 5), P_w = random({n, n}, 6);

auto head() { return attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}; }
auto with(const auto& l, const auto& w)
{
    return talking_heads{multi_head{std::vector(n, head()), W_Q, W_K, W_V, W_O}, l, w};
}

double times(const array<double, 3>& x, std::size_t b, std::size_t t, const array<double, 2>& M, std::size_t column)
{
    double sum = 0;
    for (std::size_t i = 0; i < D; ++i) sum += x(b, t, i) * M(i, column);
    return sum;
}

/// The context of query s of sentence b over the keys j with sees(j), in scalar loops.
std::vector<double> by_hand(const array<double, 3>& q, const array<double, 3>& x, std::size_t b, std::size_t s,
                            const std::function<bool(std::size_t)>& sees)
{
    const std::size_t T = x.shape()[1];
    std::vector<std::vector<double>> J(n, std::vector<double>(T)), W = J, U = J;
    for (std::size_t h = 0; h < n; ++h)
        for (std::size_t j = 0; j < T; ++j)
            for (std::size_t i = h * V; i < (h + 1) * V; ++i)
                J[h][j] += times(q, b, s, W_Q, i) * times(x, b, j, W_K, i) / std::sqrt(double{V});
    for (std::size_t g = 0; g < n; ++g) {
        double sum = 0;
        for (std::size_t j = 0; j < T; ++j) {
            double L = 0;
            for (std::size_t h = 0; h < n; ++h) L += P_l(h, g) * J[h][j];
            W[g][j] = sees(j) ? std::exp(L) : 0;
            sum += W[g][j];
        }
        for (double& w : W[g]) w = sum > 0 ? w / sum : 0;
    }
    std::vector<double> heads(n * V), context(O);
    for (std::size_t v = 0; v < n; ++v)
        for (std::size_t j = 0; j < T; ++j) {
            for (std::size_t g = 0; g < n; ++g) U[v][j] += P_w(g, v) * W[g][j];
            if (sees(j))
                for (std::size_t i = v * V; i < (v + 1) * V; ++i) heads[i] += U[v][j] * times(x, b, j, W_V, i);
        }
    for (std::size_t o = 0; o < O; ++o)
        for (std::size_t i = 0; i < n * V; ++i) context[o] += heads[i] * W_O(i, o);
    return context;
}

}  // namespace

TEST_CASE("scores are mixed before softmax and weights after it, with every mask, as in scalar loops")
{
    const std::size_t S = 5, T = 6;
    const lengths real{6, 4};
    const auto x = random({2, T, D}, 7), q = random({2, S, D}, 8);
    const auto attend = with(P_l, P_w);
    const auto memory = attend.on(x, real);
    present of_all(shape_of_rank<2>{2, T});
    boolean_mask<3> of_each(shape_of_rank<3>{2, S, T});
    for (std::size_t i = 0; i < 2 * T; ++i) of_all[i] = i % 3 != 1;
    for (std::size_t i = 0; i < 2 * S * T; ++i) of_each[i] = i % 4 != 2 && i > T;  // the first query sees no key
    const auto check = [&](const auto& mask, const auto& sees) {
        const auto is = attend(memory, q, mask);
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t s = 0; s < S; ++s) {
                const auto must = by_hand(q, x, b, s, [&](std::size_t j) { return j < real[b] && sees(b, s, j); });
                for (std::size_t o = 0; o < O; ++o) CHECK(is(b, s, o) == support::approx(must[o]));
            }
        }
    };
    check(no_mask{}, [](auto, auto, auto) { return true; });
    check(causal{}, [&](auto b, auto s, auto j) { return j + S <= real[b] + s; });
    check(lengths{2, 3}, [](auto b, auto, auto j) { return j < (b == 0 ? 2u : 3u); });
    check(of_all, [&](auto b, auto, auto j) { return of_all[b * T + j] != 0; });
    check(of_each, [&](auto b, auto s, auto j) { return of_each[(b * S + s) * T + j] != 0; });
    check(causal{} & sliding_window{2},
          [&](auto b, auto s, auto j) { return j + S <= real[b] + s && j + S + 2 > real[b] + s; });
    const auto hidden = attend.on(x, of_all);
    const auto both = attend(hidden, q, causal{});
    for (std::size_t s = 0; s < S; ++s) {
        const auto must = by_hand(q, x, 1, s, [&](std::size_t j) { return of_all[T + j] != 0 && j + S <= T + s; });
        for (std::size_t o = 0; o < O; ++o) CHECK(both(1, s, o) == support::approx(must[o]));
    }
    const auto one = attend.step(hidden, ops::step_of(q, 1), attend.start(hidden));
    const auto must = by_hand(q, x, 1, 1, [&](std::size_t j) { return of_all[T + j] != 0; });
    for (std::size_t o = 0; o < O; ++o) CHECK(one.context(1, o) == support::approx(must[o]));
    CHECK(shape_of(one.weights) == shape_of_rank<3>{2, n, T});
    CHECK(of_all[T + 1] == 0);
    CHECK(one.weights(1, 2, 1) == 0);
    CHECK(one.weights(1, 2, 0) != 0);
}

TEST_CASE("a mask that does not fit is rejected")
{
    const auto attend = with(P_l, P_w);
    const auto x = random({2, 6, D}, 7), q = random({2, 5, D}, 8);
    const auto memory = attend.on(x);
    const auto refused = [&](const auto& mask) { CHECK_THROWS_AS(attend(memory, q, mask), shape_error); };
    refused(lengths{6});
    refused(lengths{6, 7});
    refused(present(shape_of_rank<2>{3, 6}));
    refused(present(shape_of_rank<2>{2, 5}));
    refused(boolean_mask<2>(shape_of_rank<2>{2, 6}));
    refused(boolean_mask<3>(shape_of_rank<3>{3, 5, 6}));
    refused(boolean_mask<3>(shape_of_rank<3>{2, 4, 6}));
}

TEST_CASE("a lambda with captured numbers as a mask")
{
    const auto attend = with(P_l, P_w);
    const auto x = random({2, 6, D}, 7), q = random({2, 5, D}, 8);
    const auto memory = attend.on(x);
    const std::int32_t from = 1, to = 4;
    const auto sees = [from, to](score_index p) { return (p.key >= from) & (p.key < to); };
    boolean_mask<2> must(shape_of_rank<2>{5, 6});
    for (std::size_t i = 0; i < 30; ++i) must[i] = i % 6 >= 1 && i % 6 < 4;
    CHECK(support::same_bits(attend(memory, q, sees), attend(memory, q, must)));
    CHECK(support::same_bits(attend.weights_of(memory, q, sees), attend.weights_of(memory, q, must)));
}

TEST_CASE("identity matrices leave the heads unchanged")
{
    array<double, 2> unit(shape_of_rank<2>{n, n}, 0.0);
    for (std::size_t i = 0; i < n; ++i) unit(i, i) = 1;
    const auto attend = with(unit, unit);
    const auto x = random({2, 40, D}, 7);
    CHECK(distance(attend(attend.on(x), x, causal{}), attend.base(attend.base.on(x), x, causal{})) < 1e-12);
    const auto memory = attend.on(x);
    const auto a = attend.step(memory, ops::step_of(x, 3), attend.start(memory));
    const auto b = attend.base.step(memory, ops::step_of(x, 3), attend.start(memory));
    CHECK(distance(a.weights, b.weights) < 1e-12);
}

TEST_CASE("biases of all four projections, and normalizers with parameters per head")
{
    array<double, 2> unit(shape_of_rank<2>{n, n}, 0.0);
    for (std::size_t i = 0; i < n; ++i) unit(i, i) = 1;
    using sinks = normalize::softmax_with_sink<array<double, 1>>;
    std::vector<attention<score::scaled_dot, sinks, combine::weighted_sum>> heads;
    for (const double sink : {-1.0, 0.5, 2.0}) heads.push_back({{}, {array<double, 1>{sink}}, {}});
    const biases bias{random({n * V}, 12), random({n * V}, 13), random({n * V}, 14), random({O}, 15)};
    const talking_heads attend{multi_head{heads, W_Q, W_K, W_V, W_O, per_head::identity{}, bias}, unit, unit};
    const auto x = random({2, 40, D}, 7);
    const auto memory = attend.on(x);
    CHECK(distance(attend(memory, x, causal{}), attend.base(memory, x, causal{})) < 1e-12);
    const auto is = attend.step(memory, ops::step_of(x, 3), attend.start(memory));
    const auto must = attend.base.step(memory, ops::step_of(x, 3), attend.start(memory));
    CHECK(distance(is.weights, must.weights) < 1e-12);
    CHECK(distance(is.context, must.context) < 1e-12);
    CHECK(distance(attend.read(memory, ops::step_of(x, 3), attend.start(memory)).context, must.context) < 1e-12);

    talking_heads model{attend.base, P_l, P_w};
    const auto found = ad::grad_check(model, [y = random({2, 5, D}, 7)](auto&, const auto& m) {
        const auto contexts = m(m.on(y), y, causal{});
        return ops::dot(contexts, support::uneven(contexts.shape()));
    });
    CHECK_MESSAGE(bool(found), found.text());
}

TEST_CASE("many blocks of queries, one by one, and a growing memory")
{
    const auto check = [](const auto& attend, std::size_t T, std::size_t chunk) {
        const auto x = random({2, T, D}, 7);
        const auto all = attend(attend.on(x), x, causal{});
        auto known = attend.on(words_of(x, 0, chunk));
        auto state = attend.start(known);
        for (std::size_t t = 0; t < T; t += chunk) {
            const std::size_t m = std::min(chunk, T - t);
            if (t > 0) known = attend.extend(known, words_of(x, t, m));
            auto some = attend.read_all(known, words_of(x, t, m), state, causal{});
            CHECK(distance(some.contexts, words_of(all, t, m)) < 1e-12);
            state = std::move(some.state);
        }
        CHECK(state.step == T);
        const auto memory = attend.on(x);
        auto at = attend.start(memory), same = at;
        for (std::size_t t = 0; t < 3; ++t) {
            auto next = attend.step(memory, ops::step_of(x, t), at, lengths({t + 1, t + 1}));
            auto read = attend.read(memory, ops::step_of(x, t), same, lengths({t + 1, t + 1}));
            CHECK(distance(next.context, ops::step_of(all, t)) < 1e-12);
            CHECK(distance(read.context, ops::step_of(all, t)) < 1e-12);
            at = std::move(next.state);
            same = std::move(read.state);
        }
    };
    check(with(P_l, P_w), 12, 1);
    check(with(P_l, P_w), 12, 5);
    check(with(P_l, P_w), 400, 300);  // 400 queries are two blocks, and so are 300
    const attention turned{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}};
    check(talking_heads{multi_head{std::vector(n, turned), W_Q, W_K, W_V, W_O}, P_l, P_w}, 12, 5);
    const attention forgets{score::forgetting{score::dot{}, random({V, 1}, 10), random({1}, 11)}, normalize::softmax{},
                            combine::weighted_sum{}};
    check(talking_heads{multi_head{std::vector(n, forgets), W_Q, W_K, W_V, W_O}, P_l, P_w}, 12, 5);
    const attention sigmoid{
        score::modified{score::dot{}, [](auto e, score_index p) { return e - 0.1 * (p.head + 1) * p.key; }},
        normalize::sigmoid{}, combine::weighted_sum{}};
    check(talking_heads{multi_head{std::vector(n, sigmoid), W_Q, W_K, W_V, W_O, per_head::gated{random({D, n}, 9)}},
                        P_l, P_w},
          12, 5);
}

TEST_CASE("gradients, also of many blocks")
{
    const auto f = [](const auto& x, const auto& W, const auto& P) {
        const talking_heads attend{multi_head{std::vector(n, head()), W, W, W, ops::transpose(W)}, P,
                                   ops::transpose(P)};
        return attend(attend.on(x), x, causal{} & sliding_window{3});
    };
    CHECK_GRADIENT(f, random({2, 5, D}, 7), W_Q, P_l);
    const auto padded = [](const auto& x, const auto& P) {  // sentences have different lengths
        const auto attend = with(P, ops::transpose(P));
        return attend(attend.on(x, lengths{6, 3, 0}), x, causal{});
    };
    CHECK_GRADIENT(padded, random({3, 6, D}, 7), P_l);
    const auto x = random({1, 600, D}, 7);
    const auto last = words_of(x, 450, 150);  // two blocks
    const auto many = [&](const auto& P) {
        const auto attend = with(P, ops::transpose(P));
        return attend(attend.on(x), last, causal{});
    };
    CHECK_GRADIENT(many, P_l);
    ad::tape<double> on;  // keeps no scores: less memory than one head's scores
    const auto X = on.parameter(x);
    const auto lifted_from = with(P_l, P_w);
    const auto lifted = ad::lift(on, lifted_from);
    on.backward(ops::dot(lifted(lifted.on(X), X, causal{}), random({1, 600, O}, 8)));
    CHECK(on.memory().capacity() < std::size_t{600} * 600 * sizeof(double));
    const auto step = [](const auto& y, const auto& P) {
        const auto attend = with(P, ops::transpose(P));
        const auto memory = attend.on(y);
        const auto next = attend.step(memory, ops::step_of(y, 1), attend.start(memory));
        return ops::concat(next.context, ops::step_of(next.weights, 2));
    };
    CHECK_GRADIENT(step, random({2, 5, D}, 7), P_l);
}

TEST_CASE("operations")
{
    CHECK_GRADIENT([](const auto& x, const auto& P) { return ops::mix_heads(x, P); }, random({3, 2, 4}, 1),
                   random({3, 2}, 2));
    CHECK_GRADIENT([](const auto& x) { return ops::reshaped(x, shape_of_rank<2>{2, 12}); }, random({2, 4, 3}, 1));
    const auto x = random({3, 2, 700}, 1);  // more than one chunk
    const auto P = random({3, 2}, 2);
    const auto y = ops::mix_heads(x, P);
    for (const std::size_t t : {std::size_t{0}, std::size_t{511}, std::size_t{699}})
        CHECK(y(1, 1, t) == support::approx(P(0, 1) * x(0, 1, t) + P(1, 1) * x(1, 1, t) + P(2, 1) * x(2, 1, t)));
    CHECK_THROWS_WITH_AS(ops::mix_heads(x, random({2, 2}, 1)), doctest::Contains("one row for each head"), shape_error);
    CHECK_THROWS_WITH_AS(ops::reshaped(x, shape_of_rank<2>{2, 12}), doctest::Contains("a different number"),
                         shape_error);
}
