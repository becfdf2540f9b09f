// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/second_order.hpp>

#include <cstddef>
#include <string>
#include <utility>

// Second order through mechanisms, by steps and through the tiles: the parameters, the annotations and the queries all
// move.

using namespace heed;
using support::random;
using support::uneven;

namespace {

constexpr std::size_t Q = 4, D = 4, A = 5;

/// A mechanism, and what it reads.
template <class Attend, class Annotations, class Queries>
struct reading {
    Attend attend;
    Annotations annotations;  // [B,T,D]
    Queries queries;          // [B,S,Q]

    static auto parameters(auto& self, auto&& visit)
    {
        return of(visit("attend", self.attend), visit("annotations", self.annotations), visit("queries", self.queries));
    }
    template <class U, class V, class W>
    static reading<U, V, W> of(U u, V v, W w)
    {
        return {std::move(u), std::move(v), std::move(w)};
    }
};

/// Three queries, one after the other, of contexts and weights.
template <class Score, class Normalize = normalize::softmax>
void check_steps(const Score& score, const Normalize& normalize = {}, double h = 1e-4)
{
    const attention attend{score, normalize, combine::weighted_sum{}};
    auto all = reading<int, int, int>::of(attend, random({3, 7, D}, 31), random({3, 3, Q}, 32));
    CHECK_SECOND_ORDER(
        all,
        [](auto&, const auto& m) {
            const auto memory = m.attend.on(m.annotations, lengths({7, 3, 0}));
            auto state = m.attend.start(memory);
            auto total = ops::inner(ops::square(m.queries), uneven(shape_of_rank<3>{3, 3, Q}));
            for (std::size_t s = 0; s < 3; ++s) {
                auto next = m.attend.step(memory, ops::step_of(m.queries, s), state);
                state = next.state;
                total = ops::add(total, ops::inner(ops::square(next.context), uneven(next.context.shape())));
                total = ops::add(total, ops::inner(ops::square(next.weights), uneven(next.weights.shape())));
            }
            return total;
        },
        h);
}

/// Many queries, tile by tile.
template <class Score, class Mask, class Normalize = normalize::softmax>
void check_tiles(const Score& score, const Mask& mask, const Normalize& normalize = {}, std::size_t S = 60,
                 double h = 1e-4)
{
    const attention attend{score, normalize, combine::weighted_sum{}};
    auto all = reading<int, int, int>::of(attend, random({2, 70, D}, 41, 0.7), random({2, S, Q}, 42, 0.7));
    CHECK_SECOND_ORDER(
        all,
        [&](auto&, const auto& m) {
            const auto c = m.attend(m.attend.on(m.annotations, lengths({70, 33})), m.queries, mask);
            return ops::inner(ops::add(c, ops::square(c)), uneven(c.shape()));
        },
        h);
}

auto additive() { return score::additive{random({Q, A}, 1), random({D, A}, 2), random({A}, 3)}; }

}  // namespace

TEST_CASE("scores step by step")
{
    check_steps(additive());
    check_steps(score::dot{});
    check_steps(score::scaled_dot{});
    check_steps(score::general{random({Q, D}, 4)});
    check_steps(score::cosine{2.0});
    check_steps(score::contextual_positions{score::scaled_dot{}, random({D, 3}, 7)});
    check_steps(score::dynamic_convolution{random({Q, 3}, 7)});
    check_steps(score::concat{random({Q + D, A}, 5), random({A}, 6)});
    check_steps(score::with_location{additive(), random({3, 3}, 7), random({3, A}, 8)});
    check_steps(
        score::modified{score::dot{}, [](auto e, place p) { return 3 * tanh(e / 3) - 0.1 * abs(p.query - p.key); }});
}

TEST_CASE("normalizers step by step")
{
    check_steps(additive(), normalize::temporal{});
    check_steps(score::dot{}, normalize::temporal{});
    check_steps(score::dot{}, normalize::sparsemax{});
    check_steps(score::dot{}, normalize::entmax15{}, 1e-5);
    check_steps(score::dot{}, normalize::sigmoid{});
    check_steps(score::dot{}, normalize::stick_breaking{});
    check_steps(score::dot{}, normalize::top_k{2});
    check_steps(score::dot{}, normalize::softmax_with_sink{array<double, 1>{0.3}});
    check_steps(score::dot{}, normalize::local_p{random({Q, 3}, 5), random({3}, 6), 2});
}

TEST_CASE("tiles: functions of scores, tables, masks and sinks")
{
    const auto none = no_mask{};
    const auto window = causal{} & sliding_window{9};
    check_tiles(score::scaled_dot{}, none);
    check_tiles(score::general{random({Q, D}, 9)}, causal{});
    check_tiles(score::scaled_dot{}, none, {}, 300);  // more than one block
    check_tiles(score::modified{score::scaled_dot{},
                                [](auto e, place p) {
                                    return 3 * tanh(e / 3) + sin(e) * exp(-sigmoid(e)) -
                                           0.1 * abs(p.query - p.key) * (p.batch + 1);
                                }},
                window);
    const auto bias = random({1, 21}, 11);
    check_tiles(score::modified{score::dot{}, bias,
                                [](auto e, place p, const auto& b) {
                                    return e * b(p.head, p.key - p.query + 10) +
                                           tanh(b(0, p.key - p.key / 7 * 7 + 1) * e);
                                }},
                causal{});
    check_tiles(
        score::modified{score::dot{}, random({70}, 12), [](auto e, place p, const auto& b) { return e + b(p.key); }},
        none, normalize::softmax_with_sink{array<double, 1>{0.3}});
}

TEST_CASE("tiles: rows that become weights in other ways")
{
    const auto scaled = [](auto e, place p) { return 2 * e - 0.02 * abs(p.query - p.key); };
    const score::modified by_place{score::dot{}, scaled};
    check_tiles(by_place, causal{}, normalize::sigmoid{-1});
    const array<double, 1> scale{2}, bias{-1};
    check_tiles(score::modified{score::cosine{scale}, scaled}, causal{},
                normalize::temperature{0.6, normalize::sigmoid{bias}});
    // Small steps, so that no position enters or leaves a support between the two sides of a difference.
    check_tiles(by_place, causal{}, normalize::sparsemax{}, 60, 1e-7);
    check_tiles(by_place, causal{}, normalize::entmax15{}, 60, 1e-7);
    check_tiles(score::scaled_dot{}, no_mask{}, normalize::entmax15{}, 60, 1e-7);
    check_tiles(by_place, causal{}, normalize::top_k{3}, 60, 1e-7);
    check_tiles(by_place, causal{}, normalize::stick_breaking{});
    check_tiles(by_place, causal{}, normalize::temporal{});
    check_tiles(score::scaled_dot{}, no_mask{}, normalize::temporal{});
    check_tiles(score::scaled_dot{}, no_mask{}, normalize::entmax{array<double, 1>{0.4}}, 60, 1e-7);
    check_tiles(by_place, causal{}, normalize::entmax{array<double, 1>{-0.5}}, 60, 1e-6);
}

TEST_CASE("tiles: other comparisons")
{
    check_tiles(additive(), causal{});
    check_tiles(score::cosine{2.0}, no_mask{});
    check_tiles(score::forgetting{score::scaled_dot{}, random({D, 1}, 7), random({1}, 8)}, causal{});
}

TEST_CASE("linear time")
{
    check_tiles(score::kernel{score::elu_plus_one{}}, causal{}, normalize::ratio{0.9});
    check_tiles(score::kernel{score::positive_random{random({D, 6}, 9)}}, no_mask{}, normalize::ratio{});
    check_tiles(score::scaled_dot{}, causal{}, normalize::retention{0.9});
    check_tiles(score::fading{score::scaled_dot{}, random({D, 1}, 7), random({1}, 8)}, causal{},
                normalize::retention{});
}

TEST_CASE("several heads")
{
    const auto one = attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    auto heads = reading<int, int, int>::of(
        multi_head{std::vector(2, one), random({Q, 6}, 1), random({D, 6}, 2), random({D, 6}, 3), random({6, Q}, 4)},
        random({2, 70, D}, 5), random({2, 60, Q}, 6));
    CHECK_SECOND_ORDER(heads, [](auto&, const auto& m) {
        const auto c = m.attend(m.attend.on(m.annotations, lengths({70, 33})), m.queries, causal{});
        return ops::inner(ops::square(c), uneven(c.shape()));
    });
}
