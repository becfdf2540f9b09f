// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/tensors.hpp>

#include <tuple>
#include <type_traits>
#include <vector>

// README's loop with only one part on the tape: the parameters, the annotations, the queries, or part of a query. Its
// gradient equals the gradient with everything on the tape. tests/products covers every product; this file covers
// heads, hops, and states that move onto a tape.

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 3, T = 5, S = 4, D = 4;

struct problem {
    array<double, 3> annotations = random({B, T, D}, 1);
    std::vector<array<double, 2>> states, words;
    lengths real{5, 2, 0};

    problem()
    {
        for (std::size_t s = 0; s < S; ++s) {
            states.push_back(random({B, D}, 10 + s));
            words.push_back(random({B, D}, 20 + s));
        }
    }
};

/// README's loop; its loss reads all contexts and weights.
template <class Attention, class Annotations, class Queries>
auto loss_of(const Attention& attend, const Annotations& annotations, const lengths& real, const Queries& queries)
{
    auto memory = attend.on(annotations, real);
    auto state = attend.start(memory);
    std::vector<ad::var<double, 0>> terms;
    for (const auto& q : queries) {
        auto answer = attend.step(memory, q, state);
        state = answer.state;
        terms.push_back(ops::dot(answer.context, support::uneven(shape_of(answer.context))));
        terms.push_back(ops::dot(answer.weights, support::uneven(shape_of(answer.weights))));
    }
    auto sum = terms.front();
    for (std::size_t i = 1; i < terms.size(); ++i) sum = ops::add(sum, terms[i]);
    return sum;
}

using slopes = std::vector<array<double, 1>>;

struct collecting {
    ad::tape<double>& on;
    slopes& all;
    void operator()(const std::string&, const auto& x) const
    {
        const auto g = on.gradient(x);
        array<double, 1> row(shape_of_rank<1>{g.size()});
        std::copy_n(g.data, g.size(), row.data());
        all.push_back(std::move(row));
    }
};

void require_equal(const slopes& is, const slopes& must)
{
    REQUIRE(is.size() == must.size());
    for (std::size_t i = 0; i < is.size(); ++i) {
        CHECK(support::distance(is[i], must[i]) < 1e-12);
        bool felt = false;  // zero gradients would hide a lost gradient
        for (const double x : must[i]) felt = felt || x != 0;
        CHECK(felt);
    }
}

/// Puts tensors on the tape.
auto taped(ad::tape<double>& on, const std::vector<array<double, 2>>& plain)
{
    std::vector<ad::var<double, 2>> all;
    for (const auto& x : plain) all.push_back(on.parameter(x));
    return all;
}

/// Checks the gradients of parameters, annotations and queries, each alone on the tape, against all together.
template <class Attention>
void check_parts(const Attention& attend, bool parameters_alone = true)
{
    const problem p;
    slopes parameters, annotations, queries;
    {
        ad::tape<double> on;
        const auto lifted = ad::lift(on, attend);
        const auto h = on.parameter(p.annotations);
        const auto q = taped(on, p.states);
        on.backward(loss_of(lifted, h, p.real, q));
        for_each_parameter(lifted, collecting{on, parameters});
        collecting{on, annotations}("", h);
        for (const auto& x : q) collecting{on, queries}("", x);
    }
    if (parameters_alone) {
        ad::tape<double> on;
        const auto lifted = ad::lift(on, attend);
        on.backward(loss_of(lifted, p.annotations, p.real, p.states));
        slopes is;
        for_each_parameter(lifted, collecting{on, is});
        require_equal(is, parameters);
    }
    {
        ad::tape<double> on;
        const auto h = on.parameter(p.annotations);
        on.backward(loss_of(attend, h, p.real, p.states));
        slopes is;
        collecting{on, is}("", h);
        require_equal(is, annotations);
    }
    {
        ad::tape<double> on;
        const auto q = taped(on, p.states);
        on.backward(loss_of(attend, p.annotations, p.real, q));
        slopes is;
        for (const auto& x : q) collecting{on, is}("", x);
        require_equal(is, queries);
    }
}

auto general(std::size_t stream) { return score::general{random({D, D}, stream)}; }
auto additive() { return score::additive{random({D, D}, 31), random({D, D}, 32), random({D}, 33)}; }
auto over(const auto& score, const auto& normalizer) { return attention{score, normalizer, combine::weighted_sum{}}; }

}  // namespace

TEST_CASE("heads of one and of two kinds, with state")
{
    const auto heads = [](const auto& of) {
        return multi_head{of, random({D, 2 * D}, 41), random({D, 2 * D}, 42), random({D, 2 * D}, 43),
                          random({2 * D, D}, 44)};
    };
    check_parts(heads(std::vector(2, over(general(34), normalize::temporal{}))));
    check_parts(
        heads(std::tuple{over(score::dot{}, normalize::softmax{}), over(additive(), normalize::recent_temporal{2})}));
}

TEST_CASE("hops of one and of two kinds, with state")
{
    const auto first = over(general(35), normalize::temporal{}), second = over(general(36), normalize::temporal{});
    check_parts(multi_hop{std::vector{first, second}});
    check_parts(multi_hop{std::tuple{first, over(general(37), normalize::softmax{})}});
}

TEST_CASE("hops of conv_s2s with only their parameters on the tape")
{
    const problem p;
    const attention hop{score::conv_s2s{random({D, D}, 38), random({D}, 39)}, normalize::softmax{},
                        combine::weighted_sum{}};
    const multi_hop attend{std::vector{hop, hop}};
    std::vector<state_and_word<array<double, 2>, array<double, 2>>> asked;
    for (std::size_t s = 0; s < S; ++s) asked.push_back({p.states[s], p.words[s]});
    slopes together, alone;
    {
        ad::tape<double> on;
        const auto lifted = ad::lift(on, attend);
        on.backward(loss_of(lifted, on.constant(p.annotations), p.real, asked));
        for_each_parameter(lifted, collecting{on, together});
    }
    {
        ad::tape<double> on;
        const auto lifted = ad::lift(on, attend);
        on.backward(loss_of(lifted, p.annotations, p.real, asked));
        for_each_parameter(lifted, collecting{on, alone});
    }
    require_equal(alone, together);
}

namespace {

/// Checks the gradients of a query's state and of its word, each alone on the tape, against both together.
template <class Score>
void check_parts_of_query(const Score& score)
{
    const problem p;
    const auto attend = over(score, normalize::softmax{});
    const auto gradients = [&](bool states_taped, bool words_taped) {
        ad::tape<double> on;
        const auto s = taped(on, p.states), w = taped(on, p.words);
        const auto asked = [&](const auto& states, const auto& words) {
            std::vector<decltype(state_and_word{states[0], words[0]})> all;
            for (std::size_t i = 0; i < S; ++i) all.push_back({states[i], words[i]});
            return loss_of(attend, p.annotations, p.real, all);
        };
        on.backward(states_taped ? (words_taped ? asked(s, w) : asked(s, p.words)) : asked(p.states, w));
        slopes all;
        for (std::size_t i = 0; i < S && states_taped; ++i) collecting{on, all}("", s[i]);
        // The coverage of the first step reads no word, and nothing reads the coverage that the last word updates.
        for (std::size_t i = 1; i + 1 < S && words_taped; ++i) collecting{on, all}("", w[i]);
        return all;
    };
    slopes together = gradients(true, true), apart = gradients(true, false);
    for (const auto& by_word : gradients(false, true)) apart.push_back(by_word);
    require_equal(apart, together);
}

}  // namespace

TEST_CASE("only one part of a query on the tape, in states that it moves there")
{
    constexpr std::size_t N = 2;
    const nn::coverage_gru cell{random({D, 3 * N}, 51), random({3 * N}, 52), random({N, 3 * N}, 53)};
    check_parts_of_query(score::with_coverage{additive(), random({N, D}, 54), cell});
    // The first step reads no word, so only its new state and all later values are on the tape.
    const nn::gru unit{random({2 * D, 3 * N}, 55), random({3 * N}, 56), random({N, 2 * N}, 57), random({N, N}, 58)};
    check_parts_of_query(score::with_recurrence{additive(), random({N, D}, 59), unit});
}

TEST_CASE("a plain state takes the values of a taped state, and continues on its tape")
{
    const problem p;
    const auto attend = over(score::dot{}, normalize::temporal{});
    const auto memory = attend.on(p.annotations, p.real);
    auto state = attend.start(memory);
    ad::tape<double> on;
    const auto q = taped(on, p.states);
    const auto next = attend.step(memory, q[0], state).state;
    static_assert(!std::is_same_v<decltype(next), const decltype(state)>);
    state = next;
    CHECK(state.step == 1);
    CHECK(support::same_bits(state.normalize.history, next.normalize.history));

    // Without a tape it is an ordinary state.
    auto plain = attend.step(memory, p.states[0], attend.start(memory)).state;
    CHECK(support::same_bits(attend.step(memory, p.states[1], state).context,
                             attend.step(memory, p.states[1], plain).context));

    // Zero queries also continue from the same state.
    const auto none = on.constant(array<double, 3>(shape_of_rank<3>{B, 0, D}));
    CHECK(attend.read_all(memory, none, state).state.normalize.history.data() == next.normalize.history.data());

    // A beam would select rows of the values only: rejected, with a message that names the fix.
    const auto select = [](const auto& x) { return x; };
    CHECK(support::message_of<error>([&] { state.map(select); }) ==
          "attention_state::map: a state on a tape was assigned to this plain state, and map would lose its gradient; "
          "map the state that `step` returned");
    CHECK(next.map(select).step == 1);
    plain = attend.start(memory);
    CHECK(plain.map(select).step == 0);
    state = attend.start(memory);  // a plain state again
    CHECK(state.map(select).step == 0);
}

TEST_CASE("a taped state in a form that the mechanism does not make is rejected")
{
    const problem p;
    const auto attend = over(score::dot{}, normalize::temporal{});
    const auto memory = attend.on(p.annotations, p.real);
    auto state = attend.start(memory);
    state.on_tape = 0;  // as a user's policy might set it
    ad::tape<double> on;
    CHECK(support::message_of<error>([&] { attend.step(memory, on.parameter(p.states[0]), state); }) ==
          "attention: the taped state is not of the type that this mechanism makes, so its gradient would be lost; "
          "continue from a state that this mechanism's `start` or `step` returned");
}
