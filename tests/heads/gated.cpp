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

constexpr std::size_t D = 4, n = 2, V = 3, O = 5;

auto head() { return attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}; }

struct matrices {
    array<double, 2> Q = random({D, n*V}, 1), K = random({D, n*V}, 2), V_ = random({D, n*V}, 3),
                     O_ = random({n * V, O}, 4);
};
const matrices W;

auto with(const array<double, 2>& gate)
{
    return multi_head{std::vector(n, head()), W.Q, W.K, W.V_, W.O_, per_head::gated{gate}};
}

/// x [B,T,D] times columns h·V … h·V + V − 1 of a matrix.
double times(const array<double, 3>& x, std::size_t t, const array<double, 2>& M, std::size_t column)
{
    double sum = 0;
    for (std::size_t i = 0; i < D; ++i) sum += x(0, t, i) * M(i, column);
    return sum;
}

/// The context of query s over keys 0 … s, before W_O: column c.
double of_heads(const array<double, 3>& x, std::size_t s, std::size_t c)
{
    const std::size_t h = c / V;
    double sum = 0, of = 0;
    for (std::size_t j = 0; j <= s; ++j) {
        double e = 0;
        for (std::size_t i = h * V; i < (h + 1) * V; ++i) e += times(x, s, W.Q, i) * times(x, j, W.K, i);
        const double weight = std::exp(e / std::sqrt(double{V}));
        sum += weight;
        of += weight * times(x, j, W.V_, c);
    }
    return of / sum;
}

}  // namespace

TEST_CASE("each head has its slice of the gate, elementwise or headwise")
{
    for (const std::size_t T : {std::size_t{5}, std::size_t{66}}) {  // without and with tiles
        const auto x = random({1, T, D}, 5);
        for (const std::size_t G : {n * V, n}) {
            const auto gate = random({D, G}, 6);
            const auto attend = with(gate);
            const auto is = attend(attend.on(x), x, causal{});
            for (std::size_t s = 0; s < T; s += 13) {
                for (std::size_t o = 0; o < O; ++o) {
                    double must = 0;
                    for (std::size_t c = 0; c < n * V; ++c) {
                        const double open = 1 / (1 + std::exp(-times(x, s, gate, G == n ? c / V : c)));
                        must += open * of_heads(x, s, c) * W.O_(c, o);
                    }
                    CHECK(is(0, s, o) == support::approx(must));
                }
            }
        }
    }
}

TEST_CASE("a gate with a bias: σ(X W + b)")
{
    const auto gate = random({D, n}, 6), wide = random({D, n * V}, 7);
    const auto b = random({n}, 8), b_wide = random({n * V}, 9);
    const auto c = random({2, 3, n * V}, 10), x = random({2, 3, D}, 11);
    const auto gated = per_head::gated{gate, b}(c, x), elementwise = per_head::gated{wide, b_wide}(c, x);
    for (std::size_t i = 0; i < 6; ++i) {
        for (std::size_t k = 0; k < n * V; ++k) {
            double a = b(k / V), a_wide = b_wide(k);
            for (std::size_t d = 0; d < D; ++d) {
                a += x.data()[i * D + d] * gate(d, k / V);
                a_wide += x.data()[i * D + d] * wide(d, k);
            }
            const double of = c.data()[i * n * V + k];
            CHECK(std::abs(gated.data()[i * n * V + k] - of / (1 + std::exp(-a))) < 1e-14);
            CHECK(std::abs(elementwise.data()[i * n * V + k] - of / (1 + std::exp(-a_wide))) < 1e-14);
        }
    }
    multi_head attend{std::vector(n, head()), W.Q, W.K, W.V_, W.O_, per_head::gated{gate, b}};
    const auto loss = [&](auto&, const auto& lifted) {
        const auto y = lifted(lifted.on(x), x, causal{});
        return ops::dot(y, support::uneven(y.shape()));
    };
    CHECK(ad::grad_check(attend, loss).worst < 1e-9);
    CHECK(support::second_order(attend, loss));
    std::vector<std::string> names;
    for_each_parameter(attend, [&](const std::string& name, const auto&) { names.push_back(name); });
    CHECK(names.back() == "joined.b");
}

TEST_CASE("all at once, one by one, and over a growing memory")
{
    const auto attend = with(random({D, n * V}, 6));
    for (const std::size_t T : {std::size_t{7}, std::size_t{70}}) {
        const auto x = random({2, T, D}, 5);
        const auto all = attend(attend.on(x), x, causal{});
        auto known = attend.on(words_of(x, 0, 1));
        auto state = attend.start(known), same = state, composed = state;
        for (std::size_t t = 0; t < T; ++t) {
            if (t > 0) known = attend.extend(known, words_of(x, t, 1));
            const auto q = ops::step_of(x, t);
            auto next = attend.step(known, q, state);
            auto read = attend.read(known, q, same);
            CHECK(distance(next.context, ops::step_of(all, t)) < 1e-12);
            CHECK(distance(read.context, ops::step_of(all, t)) < 1e-12);
            CHECK(distance(attend.compose(known, q, composed).context, ops::step_of(all, t)) < 1e-12);
            composed = next.state;
            state = std::move(next.state);
            same = std::move(read.state);
        }
    }
}

TEST_CASE("gradients with respect to input and gate")
{
    for (const std::size_t G : {n * V, n}) {
        const auto f = [&](const auto& x, const auto& gate) {
            const multi_head attend{std::vector(n, head()), W.Q, W.K, W.V_, W.O_, per_head::gated{gate}};
            return attend(attend.on(x), x, causal{});
        };
        CHECK_GRADIENT(f, random({2, 4, D}, 5), random({D, G}, 6));
    }
    const auto check = [](const auto& x, const auto& g) { return ops::multiply_parts(x, g); };
    CHECK_GRADIENT(check, random({2, 3, 6}, 1), random({2, 3, 2}, 2));
    CHECK_GRADIENT(check, random({3, 6}, 1), random({3, 6}, 2));
    std::vector<std::string> names;
    auto attend = with(random({D, n}, 6));
    for_each_parameter(attend, [&](const std::string& name, const auto&) { names.push_back(name); });
    CHECK(names.back() == "joined.W");
    CHECK(names.size() == 5);
}

TEST_CASE("a query of two parts is gated by its state")
{
    const per_head::gated gate{random({D, n}, 6)};
    const auto c = random({1, n * V}, 5), q = random({1, D}, 7);
    CHECK(distance(gate(c, q), gate(c, state_and_word{q, random({1, 2}, 8)})) == 0);
    const auto x = random({1, 3, D}, 5);
    const auto wrong = with(random({D, 4}, 6));
    CHECK_THROWS_WITH_AS((void)wrong(wrong.on(x), x), doctest::Contains("must divide"), shape_error);
}

TEST_CASE("combine::gated runs many queries at once, with and without tiles")
{
    using gate_type = combine::gated<array<double, 2>, array<double, 1>>;
    static_assert(finishes_a_matrix<gate_type>());
    static_assert(!finishes_a_matrix<combine::attentional<array<double, 2>>>());
    for (const std::size_t G : {std::size_t{1}, std::size_t{4}}) {
        const combine::gated inner{random({4, G}, 6), random({G}, 7)};
        const combine::gated outer{random({4, std::size_t{1}}, 8), random({1}, 9), inner};
        const lengths real{70, 33};
        const auto off = [&](const auto& score, const auto& normalize, const auto& combine, const auto& mask,
                             std::size_t S) {
            return support::distance_from_one_by_one(attention{score, normalize, combine}, mask, real, S, 70);
        };
        for (const std::size_t S : {std::size_t{3}, std::size_t{70}}) {
            CHECK(off(score::dot{}, normalize::softmax{}, inner, causal{}, S) < 1e-9);
            CHECK(off(score::dot{}, normalize::softmax{}, outer, no_mask{}, S) < 1e-9);
            CHECK(off(score::dot{}, normalize::sigmoid{}, inner, causal{} & sliding_window{7}, S) < 1e-9);
            CHECK(off(score::dot{}, normalize::retention{0.9}, inner, causal{}, S) < 1e-9);
        }
        CHECK(off(score::additive{random({4, 3}, 1), random({4, 3}, 2), random({3}, 3)}, normalize::softmax{}, inner,
                  no_mask{}, 5) < 1e-9);
    }
}
