// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/tensors.hpp>

#include <tuple>
#include <vector>

// Many queries at once, from a given state to the state after the last query, and without any query.

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 2, T = 5, S = 4, Q = 3, D = 4, E = 2, N = 2;

auto additive() { return score::additive{random({Q, D}, 1), random({D, D}, 2), random({D}, 3)}; }
auto covered()
{
    const nn::coverage_gru cell{random({E, 3 * N}, 4), random({3 * N}, 5), random({N, 3 * N}, 6)};
    return attention{score::with_coverage{additive(), random({N, D}, 7), cell}, normalize::temporal{},
                     combine::weighted_sum{}};
}
auto heads()
{
    const attention head{score::dot{}, normalize::temporal{}, combine::weighted_sum{}};
    return multi_head{std::vector(2, head), random({Q, 2 * D}, 11), random({D, 2 * D}, 12), random({D, 2 * D}, 13),
                      random({2 * D, Q}, 14)};
}
auto hops()
{
    const attention first{score::general{random({D, D}, 15)}, normalize::temporal{}, combine::weighted_sum{}};
    const attention second{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    return multi_hop{std::tuple{first, second}};
}

const lengths real{5, 2};

/// Checks that queries in two calls, the second from the state of the first, equal all queries in one call.
template <class Attention, class Start>
void check_in_two_goes(const Attention& attend, const Start& start, const auto& queries_of)
{
    const auto memory = attend.on(random({B, T, D}, 21), real);
    const auto all = attend.read_all(memory, queries_of(0, S), start(memory));
    auto now = attend.read_all(memory, queries_of(0, 1), start(memory));
    CHECK(now.state.step == 1);
    for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>{1, 1}, {1, 3}, {3, 4}}) {
        now = attend.read_all(memory, queries_of(from, to), now.state);
        CHECK(now.state.step == to);
        for (std::size_t s = from; s < to; ++s) {
            CHECK(support::distance(ops::step_of(now.contexts, s - from), ops::step_of(all.contexts, s)) < 1e-14);
        }
    }
    CHECK(support::distance(attend(memory, queries_of(0, S)),
                            attend.read_all(memory, queries_of(0, S), attend.start(memory)).contexts) == 0);
}

array<double, 3> part_of(const array<double, 3>& x, std::size_t from, std::size_t to)
{
    array<double, 3> y(shape_of_rank<3>{x.shape()[0], to - from, x.shape()[2]});
    for (std::size_t s = from; s < to; ++s) ops::put_step(y, s - from, ops::step_of(x, s));
    return y;
}

}  // namespace

TEST_CASE("coverage from a given initial state, as one by one")
{
    const auto attend = covered();
    const auto memory = attend.on(random({B, T, D}, 21), real);
    const auto c_0 = random({B, T, N}, 22), states = random({B, S, Q}, 23), words = random({B, S, E}, 24);
    const auto first = attend.start(memory, attend.score.start_from(memory, c_0));
    const auto [contexts, last] = attend.read_all(memory, state_and_word{states, words}, first);
    auto now = first;
    for (std::size_t s = 0; s < S; ++s) {
        const auto one = attend.step(memory, state_and_word{ops::step_of(states, s), ops::step_of(words, s)}, now);
        CHECK(support::distance(ops::step_of(contexts, s), one.context) < 1e-14);
        now = one.state;
    }
    CHECK(last.step == S);
    CHECK(support::distance(last.score.coverage, now.score.coverage) < 1e-14);
    CHECK(support::distance(last.score.weights, now.score.weights) < 1e-14);
    CHECK(support::distance(last.normalize.history, now.normalize.history) < 1e-14);
    const auto from_zero = attend(memory, state_and_word{states, words});
    CHECK(support::distance(contexts, from_zero) > 1e-3);  // c_0 matters
}

TEST_CASE("a second call continues from the state of the first")
{
    const auto states = random({B, S, Q}, 31), words = random({B, S, E}, 32), wide = random({B, S, D}, 33);
    const auto fresh = [](const auto& attend) {
        return [&attend](const auto& memory) { return attend.start(memory); };
    };
    const auto of = [](const auto& x) {
        return [&x](std::size_t from, std::size_t to) { return part_of(x, from, to); };
    };
    const auto coverage = covered();
    check_in_two_goes(coverage, fresh(coverage), [&](std::size_t from, std::size_t to) {
        return state_and_word{part_of(states, from, to), part_of(words, from, to)};
    });
    const attention fused{additive(), normalize::temporal{}, combine::weighted_sum{}};
    check_in_two_goes(fused, fresh(fused), of(states));
    const attention products{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};  // two matrix products
    check_in_two_goes(products, fresh(products), of(wide));
    const auto several = heads();
    check_in_two_goes(several, fresh(several), of(states));
    const auto again = hops();
    check_in_two_goes(again, fresh(again), of(wide));
}

TEST_CASE("no query: no context, and an unchanged state")
{
    const auto h = random({B, T, D}, 41);
    const auto none = [&](std::size_t width) { return array<double, 3>(shape_of_rank<3>{B, 0, width}); };
    const auto check = [&](const auto& attend, const auto& queries, std::size_t width, const auto&... mask) {
        const auto memory = attend.on(h, real);
        CHECK(shape_of(attend(memory, queries, mask...)) == shape_of_rank<3>{B, 0, width});
        CHECK(attend.read_all(memory, queries, attend.start(memory), mask...).state.step == 0);
    };
    const attention fused{additive(), normalize::temporal{}, combine::weighted_sum{}};
    check(fused, none(Q), D);
    check(fused, none(Q), D, causal{});
    check(fused, none(Q), D, boolean_mask<3>(shape_of_rank<3>{B, 0, T}));
    check(fused, none(Q), D, boolean_mask<2>(shape_of_rank<2>{0, T}));
    check(fused, none(Q), D, present(shape_of_rank<2>{B, T}));
    check(fused, none(Q), D, additive_mask{none(T)});
    check(attention{score::dot{}, normalize::softmax{}, combine::weighted_sum{}}, none(D), D);
    check(attention{additive(), normalize::local_m{1}, combine::attentional{random({D + Q, std::size_t{7}}, 42)}},
          none(Q), 7);
    check(covered(), state_and_word{none(Q), none(E)}, D);
    check(heads(), none(Q), Q);
    check(hops(), none(D), D);

    ad::tape<double> on;
    const auto lifted = ad::lift(on, fused);
    const auto memory = lifted.on(on.constant(h), real);
    CHECK(shape_of(lifted(memory, on.constant(none(Q)))) == shape_of_rank<3>{B, 0, D});
    // Only the queries are on the tape: the returned state is on it.
    const auto plain_memory = fused.on(h, real);
    const auto asked = fused.read_all(plain_memory, on.constant(none(Q)), fused.start(plain_memory));
    CHECK(asked.state.step == 0);
    static_assert(!plain_tensor<decltype(asked.state.normalize.history)>);
}

TEST_CASE("keys from other annotations than the values, without lengths and with a mask")
{
    const auto keys = random({B, T, D}, 51), values = random({B, T, Q}, 52);
    const auto q = random({B, Q}, 53);
    const auto check = [&](const auto& attend) {
        const auto context_on = [&](const auto&... given) {
            const auto memory = attend.on(keys, given...);
            return attend.step(memory, q, attend.start(memory)).context;
        };
        CHECK(support::same_bits(context_on(values), context_on(values, lengths::full(B, T))));
        boolean_mask<2> as_lengths(shape_of_rank<2>{B, T});
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t t = 0; t < real[b]; ++t) as_lengths[b * T + t] = 1;
        }
        CHECK(support::distance(context_on(values, as_lengths), context_on(values, real)) < 1e-14);
        auto hidden = values;
        hidden(1, 3, 0) = std::numeric_limits<double>::quiet_NaN();
        CHECK(support::same_bits(context_on(hidden, as_lengths), context_on(values, as_lengths)));
    };
    check(attention{additive(), normalize::softmax{}, combine::weighted_sum{}});
    check(attention{additive(), normalize::temporal{}, combine::weighted_sum{}});
    const attention head{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    check(multi_head{std::vector(2, head), random({Q, 2 * D}, 11), random({D, 2 * D}, 12), random({Q, 2 * D}, 13),
                     random({2 * D, Q}, 14)});
    check(multi_hop{std::vector{attention{additive(), normalize::softmax{}, combine::weighted_sum{}}}});

    const attention attend{additive(), normalize::softmax{}, combine::weighted_sum{}};
    CHECK(support::message_of<shape_error>([&] {
              attend.on(keys, random({B, T + 1, Q}, 54));
          }) == "attention::on: the values are [2,6,3] but must be [2,5,3] (one for each annotation)");
}

TEST_CASE("every hop's context")
{
    const auto attend = hops();
    const auto memory = attend.on(random({B, T, D}, 61), real);
    const auto q = random({B, D}, 62);
    const auto answer = attend.step(memory, q, attend.start(memory));
    REQUIRE(answer.contexts.size() == 2);
    CHECK(support::same_bits(answer.contexts[1], answer.context));
    const auto& first = std::get<0>(attend.hops);
    const auto& of_first = std::get<0>(memory.of);
    CHECK(support::same_bits(answer.contexts[0], first.step(of_first, q, first.start(of_first)).context));
    CHECK(support::same_bits(attend.read(memory, q, attend.start(memory)).context, answer.context));
}
