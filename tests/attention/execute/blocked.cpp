// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/drawn_masks.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>
#include <support/tensors.hpp>

#include <cstdint>
#include <limits>
#include <vector>

using namespace heed;
using support::random;

// Enough queries for scores in blocks: equal to one query after another, forward and backward, without
// memory for all scores.

namespace {

const lengths real({70, 33, 0});
constexpr std::size_t S = 70, T = 70;
constexpr detail::kept_scores little{1, 0};  // blocks of 32 queries

/// A mechanism that runs many queries in blocks, even with few scores.
template <class Attention>
struct in_blocks {
    Attention attend;

    auto on(const auto&... source) const { return attend.on(source...); }
    auto start(const auto& memory) const { return attend.start(memory); }
    auto read(const auto&... x) const { return attend.read(x...); }
    auto operator()(const auto& memory, const auto& queries, const auto& mask) const
    {
        const std::size_t count = shape_of(queries)[1];
        const auto state = attend.start(memory);
        const auto& known = detail::mask_for(mask, detail::queries_of_call(memory, count, state), memory.real);
        return detail::execute::blocked(attend.score, attend.normalize, attend.combine, memory, attend.project(queries),
                                        {}, detail::asked_of_queries(known, memory, count, state), little);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto inner = visit("attend", self.attend);
        return in_blocks<decltype(inner)>{std::move(inner)};
    }
};

template <class Score, class Mask, class Normalize>
void check(const Score& score, const Mask& mask, const Normalize& normalize, std::size_t threads = 2)
{
    const attention attend{score, normalize, combine::weighted_sum{}};
    set_threads(threads);
    CHECK(support::distance_from_one_by_one(in_blocks<std::remove_const_t<decltype(attend)>>{attend}, mask, real, S,
                                            T) < 1e-12);
    set_threads(1);
}

/// A mask with a row for each query, of each sentence or shared by all.
template <std::size_t N>
boolean_mask<N> some(const shape_of_rank<N>& shape)
{
    boolean_mask<N> mask(shape);
    for (std::size_t i = 0; i < tensor_view<const double, N>{nullptr, shape}.size(); ++i)
        mask[i] = static_cast<std::uint8_t>(i * 7 % 3 == 0 || i % 5 == 1);
    return mask;
}

const auto by_place = [](auto e, score_index p) { return e * (p.batch + 1) - 0.01 * abs(p.query - p.key); };

}  // namespace

TEST_CASE("normalizers without tiles, and masks that tiles do not support")
{
    check(score::dot{}, no_mask{}, normalize::stick_breaking{}, 1);
    check(score::dot{}, no_mask{}, normalize::stick_breaking{});
    check(score::cosine{3}, causal{}, normalize::stick_breaking{});
    check(score::general{random({4, 4}, 9)}, lengths({5, 70, 2}), normalize::stick_breaking{});
    check(score::modified{score::dot{}, by_place}, causal{}, normalize::stick_breaking{});
    check(score::dot{}, present(some<2>({3, T})), normalize::stick_breaking{});
    check(score::dot{}, some<2>({S, T}), normalize::stick_breaking{});
    check(score::scaled_dot{}, some<3>({3, S, T}), normalize::softmax{});
    check(score::dot{}, some<3>({3, S, T}), normalize::softmax_with_sink{array<double, 1>{0.7}});
}

TEST_CASE("no tape, float, and a memory with gaps")
{
    constexpr std::size_t positions = 700, many = 200;  // blocks of 93
    CHECK(detail::kept_scores{}.queries(positions) == 93);
    const auto h = random<float>({2, positions, 4}, 1), q = random<float>({2, many, 4}, 2);
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(h, some<2>({2, positions}));
    const auto all = attend(memory, q, causal{});
    const auto state = attend.start(memory);
    double worst = 0;
    for (std::size_t s = 0; s < many; s += s % 31 == 30 ? 1 : 15) {  // including the edges of blocks
        const std::size_t seen = positions - many + s + 1;
        const auto one = attend.step(memory, ops::step_of(q, s), state, lengths({seen, seen}));
        worst = std::max(worst, support::distance(ops::step_of(all, s), one.context));
    }
    CHECK(worst < 1e-5);
}

TEST_CASE("training does not keep the scores")
{
    const std::size_t many = 1100, width = 8, scores = many * many * sizeof(double);
    const auto h = random({1, many, width}, 1), q = random({1, many, width}, 2), w = random({1, many, width}, 3);
    const attention attend{score::scaled_dot{}, normalize::stick_breaking{}, combine::weighted_sum{}};
    release_workspace();
    ad::tape<double> on;
    const auto H = on.parameter(h), Q = on.parameter(q);
    const auto lifted = ad::lift(on, attend);
    on.backward(ops::dot(lifted(lifted.on(H), Q, causal{}), w));
    CHECK(on.memory().capacity() < scores / 8);
    CHECK(workspace_size() < scores / 4);  // one block of queries
}

TEST_CASE("a predicate mask is materialized block by block, with and without a tape")
{
    const mask_mod mask{[](score_index p) { return p.key * 7 % 5 != p.query % 3 + p.batch; }};
    const attention attend{score::cosine{3}, normalize::stick_breaking{}, combine::weighted_sum{}};
    const auto h = random({3, T, 4}, 1), q = random({3, S, 4}, 2);
    const detail::predicate_of_queries places{mask, 0, S, T, 0};
    const auto drawn = detail::materialize_mask(mask, real, 0, S, T);
    const auto answer = [&](const auto& x, const auto& y, const auto& which) {
        return detail::execute::blocked(attend.score, attend.normalize, attend.combine, attend.on(x, real),
                                        attend.project(y), {}, which, little);
    };
    CHECK(support::same_bits(answer(h, q, places), answer(h, q, support::for_blocks(drawn))));
    const auto gradients = [&](const auto& which) {
        ad::tape<double> on;
        const auto H = on.parameter(h), Q = on.parameter(q);
        on.backward(ops::dot(answer(H, Q, which), support::uneven<double>(shape_of_rank<3>{3, S, 4})));
        return std::pair{copy_of(on.gradient(H)), copy_of(on.gradient(Q))};
    };
    const auto by_places = gradients(places), by_rows = gradients(support::for_blocks(drawn));
    CHECK(support::same_bits(by_places.first, by_rows.first));
    CHECK(support::same_bits(by_places.second, by_rows.second));
    // A user's normalizer, without tile rules.
    const attention local{score::scaled_dot{}, normalize::stick_breaking{}, combine::weighted_sum{}};
    CHECK(support::distance(local(local.on(h, real), q, mask), local(local.on(h, real), q, drawn)) < 1e-14);
}

TEST_CASE("training does not keep a predicate mask")
{
    const std::size_t many = 2100, width = 2, pairs = many * many;
    const auto h = random({1, many, width}, 1), q = random({1, many, width}, 2), w = random({1, many, width}, 3);
    // Two nested functions of scores cannot run in tiles.
    const attention attend{score::modified{score::modified{score::dot{}, [](auto e, score_index) { return e; }},
                                           [](auto e, score_index) { return 2 * e; }},
                           normalize::softmax{}, combine::weighted_sum{}};
    release_workspace();
    ad::tape<double> on;
    const auto H = on.parameter(h), Q = on.parameter(q);
    const auto lifted = ad::lift(on, attend);
    on.backward(ops::dot(lifted(
                             lifted.on(H), Q, causal{} & [](score_index p) { return p.key % 3 != 1; }),
                         w));
    CHECK(on.memory().capacity() < pairs / 2);  // a mask of all pairs takes a byte each
}

TEST_CASE("append_all concatenates positions, with gradients")
{
    const auto f = [](const auto& a, const auto& b, const auto& c) { return ops::append_all(std::vector{a, b, c}); };
    const auto a = random({2, 3, 4}, 1), b = random({2, 1, 4}, 2), c = random({2, 2, 4}, 3);
    const auto y = f(a, b, c);
    CHECK(shape_of(y) == shape_of_rank<3>{2, 6, 4});
    for (std::size_t s = 0; s < 2; ++s) {
        for (std::size_t i = 0; i < 4; ++i) {
            for (std::size_t t = 0; t < 6; ++t)
                CHECK(y(s, t, i) == (t < 3 ? a(s, t, i) : t < 4 ? b(s, 0, i) : c(s, t - 4, i)));
        }
    }
    support::inputs<array<double, 3>, array<double, 3>, array<double, 3>> all{{a, b, c}};
    const auto checked = ad::grad_check(all, [&](auto&, const auto& x) {
        return ops::dot(std::apply(f, x.at), support::uneven<double>(shape_of_rank<3>{2, 6, 4}));
    });
    CHECK(checked.worst < 1e-8);
    CHECK(support::second_order(all, [&](auto&, const auto& x) {
              const auto joined = std::apply(f, x.at);
              return ops::dot(ops::multiply(joined, joined), support::uneven(joined.shape()));
          }).worst < 1e-6);
    CHECK_THROWS_WITH_AS(ops::append_all(std::vector{a, random({2, 3, 5}, 1)}), doctest::Contains("append_all"),
                         shape_error);
}
