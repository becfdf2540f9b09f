// SPDX-License-Identifier: BSD-3-Clause
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/heads.hpp>
#include <support/mechanism_tests.hpp>

#include <heed/heads/multi_head.hpp>
#include <heed/heads/multi_hop.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace heed;
using namespace support::heads;
using support::check_close;
using support::random;
namespace scalar = support::scalar;
namespace running = support::running;

TEST_CASE("each hop's query includes the context of the previous hop")
{
    const auto scores = [](std::size_t i) { return score::general{random({D, D}, 50 + i, 0.5)}; };
    const auto softmax_hop = [&](std::size_t i) {
        return attention{scores(i), normalize::softmax{}, combine::weighted_sum{}};
    };
    const auto plus = [](scalar::numbers q, const scalar::numbers& c, std::size_t) {
        for (std::size_t k = 0; k < q.size(); ++k) q[k] += c[k];
        return q;
    };
    const support::plain_query describe{D};
    {
        const multi_hop attend{std::vector{softmax_hop(0), softmax_hop(1), softmax_hop(2)}};
        std::vector<loop> loops;
        for (std::size_t i = 0; i < 3; ++i) loops.push_back({scalar::general(rows(scores(i).W)), false});
        check_values(
            attend, [&](const auto& p, const auto& at) { return expected_hops(loops, plus, p, at); }, describe);
        check_contracts(attend, describe);
    }
    {
        // Different kinds, one with history.
        const attention second{scores(1), normalize::temporal{}, combine::weighted_sum{}};
        const multi_hop attend{std::tuple{softmax_hop(0), second}};
        const std::vector<loop> loops{{scalar::general(rows(scores(0).W)), false},
                                      {scalar::general(rows(scores(1).W)), true}};
        check_values(
            attend, [&](const auto& p, const auto& at) { return expected_hops(loops, plus, p, at); }, describe);
        support::check_gradients(attend, describe, D);
    }
}

namespace {

template <class Matrix>
struct mixed;
template <class Matrix>
auto mixed_of(Matrix W, Matrix U)
{
    return mixed<Matrix>{std::move(W), std::move(U)};
}

/// An update with parameters: q' = tanh(q W + c U), for any sizes.
template <class Matrix>
struct mixed {
    Matrix W, U;

    auto operator()(const tensor auto& query, const tensor auto& context, std::size_t) const
    {
        return ops::tanh(ops::add(ops::linear(query, W), ops::linear(context, U)));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto first = visit("W", self.W);  // first: function arguments are evaluated in any order
        return mixed_of(std::move(first), visit("U", self.U));
    }
};
}  // namespace

TEST_CASE("hops with a custom update, with different sizes")
{
    const score::general score{random({Q, D}, 60)};
    const attention hop{score, normalize::softmax{}, combine::weighted_sum{}};
    const auto update = mixed_of(random({Q, Q}, 61), random({D, Q}, 62));
    const multi_hop attend{std::vector{hop, hop}, update};
    const std::vector<loop> loops(2, {scalar::general(rows(score.W)), false});
    const auto next = [&](const scalar::numbers& q, const scalar::numbers& c, std::size_t) {
        return scalar::hidden({scalar::times(q, rows(update.W)), scalar::times(c, rows(update.U))});
    };
    check_values(
        attend, [&](const auto& p, const auto& at) { return expected_hops(loops, next, p, at); }, plainly);
    support::check_gradients(attend, plainly, D);
    std::vector<std::string> names;
    for_each_parameter(attend, [&](const std::string& name, const auto&) { names.push_back(name); });
    CHECK(names == std::vector<std::string>{"hops.0.score.W", "hops.1.score.W", "update.W", "update.U"});
}

TEST_CASE("the next hop keeps the query's word; one hop equals the mechanism")
{
    const auto Y = random({2, A}, 40);
    const score::with_word score{score::additive{random({D, A}, 41), random({D, A}, 42), random({A}, 43)}, Y};
    const attention hop{score, normalize::temporal{}, combine::weighted_sum{}};
    const multi_hop once{std::vector{hop}}, twice{std::vector{hop, hop}};
    const auto annotations = random({2, 4, D}, 1), states = random({2, 3, D}, 2), words = random({2, 3, 2}, 3);
    const state_and_word asked{ops::step_of(states, 0u), ops::step_of(words, 0u)};
    const auto plain = hop.on(annotations, lengths{4, 2});
    const auto memory = twice.on(annotations, lengths{4, 2});
    const auto first = hop.step(plain, asked, hop.start(plain));
    const auto single = once.step(once.on(annotations, lengths{4, 2}), asked, once.start(once.on(annotations)));
    CHECK(support::same_bits(single.context, first.context));
    const auto both = twice.step(memory, asked, twice.start(memory));
    const state_and_word again{ops::add(asked.state, first.context), asked.word};
    const auto second = hop.step(plain, again, hop.start(plain));
    CHECK(support::same_bits(both.context, second.context));
    CHECK(support::same_bits(both.query.state, ops::add(again.state, second.context)));
    CHECK(support::same_bits(both.query.word, asked.word));
    const state_and_projected_word multiplied{asked.state, score.project_words(asked.word)};
    CHECK(support::same_bits(twice.step(memory, multiplied, twice.start(memory)).context, both.context));
    const multi_head heads{std::vector{hop, hop}, random({D, 2 * D}, 4), random({D, 2 * D}, 5), random({D, 2 * D}, 6),
                           random({2 * D, D}, 7)};
    const auto of_heads = heads.on(annotations);
    CHECK(support::same_bits(heads.step(of_heads, multiplied, heads.start(of_heads)).context,
                             heads.step(of_heads, asked, heads.start(of_heads)).context));
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t t = 0; t < 4; ++t) {
            CHECK(both.weights(b, 0, t) == first.weights(b, t));
            CHECK(both.weights(b, 1, t) == second.weights(b, t));
        }
    }
    CHECK(support::same_bits(twice.read(memory, asked, twice.start(memory)).context, both.context));
    // All queries at once, step by step.
    const auto all = twice.read_all(memory, state_and_word{states, words}, twice.start(memory));
    auto state = twice.start(memory);
    for (std::size_t s = 0; s < 3; ++s) {
        const auto now = twice.step(memory, state_and_word{ops::step_of(states, s), ops::step_of(words, s)}, state);
        CHECK(support::distance(ops::step_of(all.contexts, s), now.context) < 1e-14);
        CHECK(support::distance(ops::step_of(all.queries.state, s), now.query.state) < 1e-14);
        state = now.state;
    }
}
