// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <heed/heed.hpp>
#include <support/tensors.hpp>

// Combinations of masks of any shape, in every executor, compared with composed steps under boolean and additive masks
// [B,T] that plain loops compute.

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 3, S = 66, T = 70, N = 6;
constexpr double infinity = std::numeric_limits<double>::infinity();
const lengths real{T, 41, 0};

using seen = std::function<bool(std::size_t b, std::size_t s, std::size_t t)>;
using added = std::function<double(std::size_t b, std::size_t s, std::size_t t)>;
const added nothing = [](auto, auto, auto) { return 0.0; };
const seen everything = [](auto, auto, auto) { return true; };

/// Contexts of successive composed steps.
array<double, 3> step_by_step(const auto& attend, const auto& memory, const array<double, 3>& q, const seen& sees,
                              const added& adds)
{
    std::vector<array<double, 2>> contexts;
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < q.shape()[1]; ++s) {
        array<double, 2> bias(shape_of_rank<2>{B, T});
        for (std::size_t b = 0; b < B; ++b)
            for (std::size_t t = 0; t < T; ++t) bias(b, t) = sees(b, s, t) ? adds(b, s, t) : -infinity;
        auto now = attend.compose(memory, ops::step_of(q, s), state, additive_mask{bias});
        contexts.push_back(now.context);
        state = now.state;
    }
    return ops::swap_axes(ops::stack(contexts));
}

template <std::size_t R>
boolean_mask<R> truth(const shape_of_rank<R>& shape)
{
    boolean_mask<R> mask(shape);
    for (std::size_t i = 0, n = tensor_view<const bool, R>{nullptr, shape}.size(); i < n; ++i)
        mask[i] = i * 7 % 5 != 2 && i % 11 != 3 ? 1 : 0;
    return mask;
}

bool causal_at_the_end(std::size_t b, std::size_t s, std::size_t t) { return t + S <= real[b] + s; }

template <class Mechanism>
void check_all(const Mechanism& attend, double most = 1e-12)
{
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2);
    const auto memory = attend.on(h, real);
    const auto check = [&](const auto& mask, const seen& sees, const added& adds = nothing) {
        CHECK(support::distance(attend(memory, q, mask), step_by_step(attend, memory, q, sees, adds)) < most);
    };
    const auto pair = truth<2>({S, T}), one_row = truth<2>({1, T}), column = truth<2>({S, 1});
    const auto of_each = truth<3>({B, S, T}), of_sentence = truth<3>({B, 1, T});
    const auto four = truth<4>({B, 1, S, T});
    const present there(truth<2>({B, T}));
    const auto by_index = [](score_index p) { return (p.key + p.query) % 3 != 0; };

    check(pair, [&](auto, auto s, auto t) { return pair[s * T + t] != 0; });
    check(one_row, [&](auto, auto, auto t) { return one_row[t] != 0; });
    check(column, [&](auto, auto s, auto) { return column[s] != 0; });
    check(of_each, [&](auto b, auto s, auto t) { return of_each[(b * S + s) * T + t] != 0; });
    check(of_sentence, [&](auto b, auto, auto t) { return of_sentence[b * T + t] != 0; });
    check(four, [&](auto b, auto s, auto t) { return four[(b * S + s) * T + t] != 0; });
    check(there, [&](auto b, auto, auto t) { return there[b * T + t] != 0; });
    check(causal_upper_left{}, [](auto, auto s, auto t) { return t <= s; });
    check(causal_after{9}, [](auto, auto s, auto t) { return t <= s + 9; });
    check([](score_index p) { return (p.key > 3 && p.query < 40) || p.key == 1; },
          [](auto, auto s, auto t) { return (t > 3 && s < 40) || t == 1; });
    check(causal{} & pair, [&](auto b, auto s, auto t) { return causal_at_the_end(b, s, t) && pair[s * T + t] != 0; });
    check(pair & by_index & lengths{50, 60, 3},
          [&](auto b, auto s, auto t) { return pair[s * T + t] != 0 && (t + s) % 3 != 0 && t < (b == 0 ? 50u : 60u); });
    check(!there | causal_upper_left{}, [&](auto b, auto s, auto t) { return there[b * T + t] == 0 || t <= s; });
    check(causal_after{20} & !(of_sentence | column),
          [&](auto b, auto s, auto t) { return t <= s + 20 && !(of_sentence[b * T + t] != 0 || column[s] != 0); });

    const auto numbers = random({S, T}, 3);
    auto of_sentences = random({B, 1, T}, 4);
    of_sentences(1, 0, 3) = -infinity;
    const auto of_queries = random({1, S, 1}, 5);
    const auto all = ops::reshaped(random({B, S, T}, 6), B, 1, S, T);
    check(additive_mask{numbers}, everything, [&](auto, auto s, auto t) { return numbers(s, t); });
    check(additive_mask{of_sentences} & causal{}, causal_at_the_end,
          [&](auto b, auto, auto t) { return of_sentences(b, 0, t); });
    check(
        causal{} & additive_mask{of_queries} & pair,
        [&](auto b, auto s, auto t) { return causal_at_the_end(b, s, t) && pair[s * T + t] != 0; },
        [&](auto, auto s, auto) { return of_queries(0, s, 0); });
    check(
        lengths{50, 60, 3} & additive_mask{all}, [](auto b, auto, auto t) { return t < (b == 0 ? 50u : 60u); },
        [&](auto b, auto s, auto t) { return all(b, 0, s, t); });
}

}  // namespace

TEST_CASE("in tiles")
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2);
    const auto memory = attend.on(h, real);
    CHECK(explain(attend, memory, q, causal{} & truth<2>({S, T}) & additive_mask{random({S, T}, 3)})
              .starts_with("tiled:"));
    CHECK(explain(attend, memory, q, present(truth<2>({B, T}))).starts_with("tiled:"));
    check_all(attend);
}
TEST_CASE("in tiles, with a function of the score")
{
    check_all(attention{score::modified{score::dot{}, [](auto e, score_index p) { return e + 0.01 * p.key; }},
                        normalize::sparsemax{}, combine::weighted_sum{}});
}
TEST_CASE("in tiles, with a history")
{
    check_all(attention{score::scaled_dot{}, normalize::temporal{}, combine::weighted_sum{}});
}
TEST_CASE("in blocks") { check_all(attention{score::dot{}, normalize::stick_breaking{}, combine::weighted_sum{}}); }
TEST_CASE("a temperature does not scale an additive mask")
{
    check_all(attention{score::dot{}, normalize::temperature{0.5}, combine::weighted_sum{}});
}
TEST_CASE("in linear time, or pair by pair")
{
    check_all(attention{score::kernel{score::elu_plus_one{}}, normalize::ratio{}, combine::weighted_sum{}}, 1e-11);
}
TEST_CASE("step by step")
{
    check_all(attention{score::additive{random({N, 4}, 7), random({N, 4}, 8), random({4}, 9)}, normalize::local_m{5},
                        combine::weighted_sum{}});
}

TEST_CASE("one query reads its row of a mask of many queries")
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({B, T, N}, 1), q = random({B, std::size_t{1}, N}, 2);
    const auto memory = attend.on(h, real);
    auto state = attend.start(memory);
    state.step = 5;
    const auto one_row = truth<2>({1, T});
    const auto check = [&](const auto& of_one, const auto& of_many) {
        const auto must = attend.read_all(memory, q, state, of_many).contexts;
        const auto is = attend.step(memory, ops::step_of(q, 0), state, of_one);
        CHECK(support::distance(is.context, ops::step_of(must, 0)) < 1e-14);
        CHECK(support::same_bits(attend.read(memory, ops::step_of(q, 0), state, of_one).context, is.context));
        CHECK(support::distance(attend.compose(memory, ops::step_of(q, 0), state, of_one).context, is.context) < 1e-14);
        auto kept = is;
        attend.step_into(kept, memory, ops::step_of(q, 0), state, of_one);
        CHECK(support::same_bits(kept.context, is.context));
    };
    const mask_mod even{[](score_index p) { return (p.key + p.query) % 2 == 0; }};
    const additive_mask numbers{random({B, T}, 3)};
    const additive_mask of_many{ops::reshaped(numbers.bias, B, 1, T)};
    check(causal{} & sliding_window{7}, causal{} & sliding_window{7});
    check(even, even);
    check(even & one_row, even & one_row);
    check(even & numbers, even & of_many);
    check(lengths{3, 4, 0} & numbers, lengths{3, 4, 0} & of_many);
    check(causal_after{3}, causal_after{3});
}

TEST_CASE("queries in chunks, from the start and after earlier queries, match all queries at once")
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2);
    const auto memory = attend.on(h, real);
    const auto check = [&](const auto& mask) {
        const auto all = attend(memory, q, mask);
        auto [first, state] = attend.read_all(memory, ops::slice(q, 1, 0, 20), attend.start(memory), mask);
        const auto rest = attend.read_all(memory, ops::slice(q, 1, 21, S), from_query(state, 21), mask).contexts;
        CHECK(support::distance(first, ops::slice(all, 1, 0, 20)) < 1e-14);
        CHECK(support::distance(attend.step(memory, ops::step_of(q, 20), state, mask).context, ops::step_of(all, 20)) <
              1e-14);
        CHECK(support::distance(rest, ops::slice(all, 1, 21, S)) < 1e-14);
    };
    check(causal_upper_left{});
    check(causal_after{4});
}

TEST_CASE("the gradient of an additive mask is summed over the scores that share a number")
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2), w = random({B, S, N}, 3);
    const auto check = [&](auto bias) {
        const auto loss = [&](const auto& with) {
            const auto memory = attend.on(h, real);
            return ops::dot(attend(memory, q, causal{} & additive_mask{with}), w);
        };
        ad::tape<double> on;
        const auto taped = on.parameter(bias);
        on.backward(loss(taped));
        const auto slope = copy_of(on.gradient(taped));
        for (std::size_t i = 0; i < bias.size(); i += 1 + bias.size() / 7) {
            auto up = bias, down = bias;
            up.data()[i] += 1e-5;
            down.data()[i] -= 1e-5;
            CHECK(slope.data()[i] ==
                  doctest::Approx((loss(up).data()[0] - loss(down).data()[0]) / 2e-5).epsilon(1e-7).scale(1));
        }
    };
    check(random({S, T}, 4));
    check(random({1, T}, 5));
    check(random({S, 1}, 6));
    check(random({B, 1, T}, 7));
    check(ops::reshaped(random({B, S, T}, 8), B, 1, S, T));
}

TEST_CASE("each head reads its slice of a mask [B,H,S,T]")
{
    const std::size_t n = 2;
    const auto head = attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    array<double, 2> unit(shape_of_rank<2>{N, N}, 0.0);
    for (std::size_t i = 0; i < N; ++i) unit(i, i) = 1;
    const multi_head attend{std::vector(n, head), unit, unit, unit, unit};
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2);
    const auto memory = attend.on(h, real);
    const auto mask = truth<4>({1, n, S, T});
    const auto bias = ops::reshaped(random({n * B, S, T}, 3), B, n, S, T);
    const auto is = attend(memory, q, causal{} & mask & additive_mask{bias});
    for (std::size_t i = 0; i < n; ++i) {
        const auto part = head.on(ops::slice_columns(h, i * 3, i * 3 + 3), real);
        const auto must = step_by_step(
            head, part, ops::slice_columns(q, i * 3, i * 3 + 3),
            [&](auto b, auto s, auto t) { return causal_at_the_end(b, s, t) && mask[(i * S + s) * T + t] != 0; },
            [&](auto b, auto s, auto t) { return bias(b, i, s, t); });
        CHECK(support::distance(ops::slice_columns(is, i * 3, i * 3 + 3), must) < 1e-12);
    }
    CHECK(support::message_of<shape_error>([&] {
              (void)attend(memory, q, truth<4>({1, 3, S, T}));
          }) == "attention: the boolean mask is [1,3,66,70] but must be [3,2,66,70], [B,H,S,T]; an axis of size 1 is "
                "broadcast");
}

TEST_CASE("masks that do not fit are rejected, and meaningless combinations do not compile")
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2);
    const auto memory = attend.on(h, real);
    const auto says = [&](const auto& mask) {
        return support::message_of<shape_error>([&] { (void)attend(memory, q, mask); });
    };
    CHECK(says(truth<2>({B, T})) == "attention: the boolean mask is [3,70] but must be [66,70], [S,T]; an axis of size "
                                    "1 is broadcast; for a mask per sentence use present{...} or lengths");
    CHECK(says(causal{} & truth<3>({2, S, T})) ==
          "attention: the boolean mask is [2,66,70] but must be [3,66,70], [B,S,T]; an axis of size 1 is broadcast");
    CHECK(says(truth<4>({B, 2, S, T})) == "attention: the boolean mask is [3,2,66,70] but must be [3,1,66,70], "
                                          "[B,H,S,T]; an axis of size 1 is broadcast");
    CHECK(says(additive_mask{random({B, S, T - 1}, 1)}) ==
          "attention: the additive mask is [3,66,69] but must be [3,66,70], [B,S,T]; an axis of size 1 is broadcast");
    CHECK(says(present(truth<2>({2, T}))).starts_with("attention: the mask of positions that are present"));
    CHECK(says(causal{} & lengths{1, 2}) ==
          "attention: the mask: 2 lengths for a batch of 3 rows; give one length per row");
    CHECK(support::message_of<shape_error>([&] {
              (void)attend.step(memory, ops::step_of(q, 0), attend.start(memory), causal{} & truth<2>({2, T}));
          }) == "attention: the boolean mask is [2,70] but must be [3,70]; an axis of size 1 is broadcast");
}

TEST_CASE("floats: the boolean masks that tiles read ahead agree with reading one score at a time")
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto check = [&](std::size_t queries, std::size_t keys, const auto& mask, std::size_t of_sentence,
                           std::size_t of_query, std::size_t of_key) {
        const auto h = random<float>({2, keys, N}, 1), q = random<float>({2, queries, N}, 2);
        const auto memory = attend.on(h, lengths{keys, keys - 3});
        const mask_mod one_by_one{[&](score_index p) {
            lane_mask seen(false);
            for (std::size_t i = 0; i < lane_count; ++i) {
                const auto s = static_cast<std::size_t>(p.query.at[i]), t = static_cast<std::size_t>(p.key.at[i]);
                const bool there = s < queries && t < keys;
                seen.at[i] =
                    there && mask[static_cast<std::size_t>(p.batch) * of_sentence + s * of_query + t * of_key] != 0 ? -1
                                                                                                                    : 0;
            }
            return seen;
        }};
        const auto run = [&](const auto& hides) {
            ad::tape<float> on;
            const auto H = on.parameter(h), Q = on.parameter(q);
            const auto contexts = attend(attend.on(H, lengths{keys, keys - 3}), Q, hides);
            on.backward(ops::dot(contexts, q));
            return std::pair{copy_of(on.gradient(H)), copy_of(on.gradient(Q))};
        };
        CHECK(support::same_bits(attend(memory, q, mask), attend(memory, q, one_by_one)));
        CHECK(support::same_bits(attend(memory, q, causal{} & mask), attend(memory, q, causal{} & one_by_one)));
        const auto is = run(mask), must = run(one_by_one);
        CHECK(support::same_bits(is.first, must.first));
        CHECK(support::same_bits(is.second, must.second));
    };
    for (const std::size_t many : {64u, 71u, 200u, 131u}) {  // the last size is odd
        const std::size_t keys = many == 131 ? 203 : many + 21;
        check(many, keys, truth<2>({many, keys}), 0, keys, 1);
        check(many, keys, truth<3>({2, many, keys}), many * keys, keys, 1);
        check(many, keys, truth<2>({many, 1}), 0, 1, 0);
        check(many, keys, truth<3>({2, 1, keys}), keys, 0, 1);
    }
}

TEST_CASE("a tape keeps a mask until the gradients are computed")
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2);
    const auto slopes = [&](const auto& forget) {
        ad::tape<double> on;
        const auto H = on.parameter(h), Q = on.parameter(q);
        auto mask = std::make_unique<boolean_mask<2>>(truth<2>({S, T}));
        auto seen = std::make_unique<lengths>(lengths{50, 40, 0});
        const auto contexts = attend(attend.on(H, real), Q, *mask & *seen);
        forget(mask, seen);
        on.backward(ops::dot(contexts, q));
        return copy_of(on.gradient(H));
    };
    const auto must = slopes([](const auto&, const auto&) {});
    const auto is = slopes([](auto& mask, auto& seen) {
        for (std::size_t i = 0; i < S * T; ++i) (*mask)[i] = 1;
        *seen = lengths{T, T, T};
        mask.reset();
        seen.reset();
    });
    CHECK(support::same_bits(is, must));
}
