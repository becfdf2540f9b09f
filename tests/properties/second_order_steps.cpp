// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/ops/tiles_in_bfloat16.hpp>
#include <support/curvature.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

// Second-order derivatives of every operation, by name. This file covers scores, weights and whole steps;
// second_order.cpp covers the others.

using namespace heed;
using support::random;
using support::with;

namespace {

const lengths real{3, 2};
constexpr std::uint64_t stream = 5;

/// Calls an operation with two results and uses both.
auto both(const auto&... settings)
{
    return [=](const auto& operation, const auto&... x) {
        const auto [first, second] = operation(x..., settings...);
        return std::tuple{first, second};
    };
}

}  // namespace

TEST_CASE("operations without a derivative, and the reasons")
{
    using support::without_derivative;
    static_assert(without_derivative(ops::argmax, "the index of the largest score is constant or jumps"));
    static_assert(without_derivative(ops::sample, "a drawn position is constant or jumps"));
    static_assert(without_derivative(ops::first_stop, "the first stopping position is constant or jumps"));
    static_assert(support::without_second_order(ops::attend_tiled_in_bfloat16, "it takes floats, and no dual numbers"));
}

TEST_CASE("weights")
{
    const auto e = random({2, 3}, 1);
    const auto each = random({2, 3, 2}, 2);
    CHECK_CURVATURE(ops::softmax, with(real), e);
    CHECK_CURVATURE(ops::softmax, with(real), each);
    CHECK_CURVATURE(ops::softmax, with(-1), random({2, 2, 2, 3}, 4));
    CHECK_CURVATURE(ops::softmax, with(1), each);
    CHECK_CURVATURE(ops::log_softmax, with(-1), e);
    CHECK_CURVATURE(ops::log_softmax, with(1), each);
    CHECK_CURVATURE(ops::softmax_with_sink, with(real), e, random({1}, 3));
    CHECK_CURVATURE(ops::sigmoid_weights, with(real, 0.3), e);
    // Some positions get no weight.
    const auto of_great = [](const auto& operation, const auto& x, const auto&... shaped_by) {
        return operation(ops::scale(x, 3.0), shaped_by..., real);
    };
    CHECK_CURVATURE(ops::sparsemax, of_great, e);
    CHECK_CURVATURE(ops::entmax15, of_great, e);
    CHECK_CURVATURE(ops::entmax, of_great, e, random({1}, 4));
    CHECK_CURVATURE(ops::top_k, with(real, std::size_t{2}), e);
    CHECK_CURVATURE(ops::stick_breaking, with(real), e);
    CHECK_CURVATURE(
        ops::weights_by_sum,
        [](const auto& operation, const auto& x) {
            return operation(ops::exp(x), real, ops::rule_of_sums{0.9, true});
        },
        e);
    CHECK_CURVATURE(
        ops::scale_from_greatest, [](const auto& operation, const auto& x) { return operation(x, x, real, 1.7); }, e);
    CHECK_CURVATURE(ops::monotonic, with(real), e, random({1}, 5), random({2, 3}, 6));
    CHECK_CURVATURE(ops::mocha, with(std::size_t{2}, real), random({2, 3}, 7), e, random({1}, 8));
}

TEST_CASE("random draws")
{
    const auto e = random({2, 3}, 1);
    const array<double, 2> drawn{{0, 1, 0}, {1, 0, 0}};
    CHECK_CURVATURE(ops::log_probability, with(drawn, real), e);
    CHECK_CURVATURE(ops::add_gumbel, with(real, stream, 0.7), e);
    CHECK_CURVATURE(ops::add_normal, with(real, stream, 0.7), e);
    const auto of_weights = [](const auto& thin, const auto& x) { return thin(ops::exp(x), real, 0.4, stream, true); };
    CHECK_CURVATURE(ops::dropout_weights, of_weights, e);
    CHECK_CURVATURE(ops::straight_through, with(), e, random({2, 3}, 2));
}

TEST_CASE("positions and distances")
{
    const auto e = random({2, 3}, 1);
    const lengths up_to{3, 2};
    CHECK_CURVATURE(ops::at_distances, with(std::size_t{1}, std::size_t{4}, up_to, lengths{1, 0}), e);
    CHECK_CURVATURE(ops::sum_by_distance, with(std::size_t{2}, std::size_t{1}, std::size_t{1}), e);
    CHECK_CURVATURE(ops::add_contextual_positions, with(up_to, lengths{0, 0}), e, random({2, 3}, 2));
    CHECK_CURVATURE(ops::place_in_row, with(real), e, random({3}, 3));
    CHECK_CURVATURE(ops::gaussian, with(std::vector<std::size_t>{1, 0}, 1.5), e, random({2}, 4));
    CHECK_CURVATURE(ops::gaussian_mixture, with(), random({2, 4}, 5), random({2, 2}, 6), random({2, 3, 1}, 7));
    CHECK_CURVATURE(ops::rotate, with(std::size_t{2}, ops::rotation{}), random({2, 3, 4}, 8));
    CHECK_CURVATURE(ops::positive_features, with(), random({2, 5}, 9), random({2, 3}, 10));
}

TEST_CASE("histories")
{
    const auto e = random({2, 3}, 1);
    CHECK_CURVATURE(ops::recent_sums, both(std::size_t{3}), random({2, 3, 2}, 2), e);
    const auto of_fertility = [](const auto& share, const auto& weights, const auto& fertility) {
        return share(weights, ops::exp(fertility));
    };
    CHECK_CURVATURE(ops::share, of_fertility, random({2, 3}, 5), random({2, 3}, 6));
}

TEST_CASE("running sums")
{
    const auto keys = random({2, 3, 4}, 1);
    CHECK_CURVATURE(ops::carried_sums, with(), random({2, 3, 1}, 2));
    CHECK_CURVATURE(ops::carry_sums, with(), keys, random({2, 2, 4}, 3));
    CHECK_CURVATURE(ops::carried_to, with(std::span<const std::size_t>{}, real, std::size_t{1}, std::size_t{2}), keys);
    CHECK_CURVATURE(ops::add_to_sums, with(real, 0.9), random({2, 4, 3}, 4), keys, random({2, 3, 2}, 5));
    const auto of_positive = [](const auto& operation, const auto& query, const auto& sums) {
        return operation(ops::exp(query), ops::exp(sums), true);
    };
    CHECK_CURVATURE(ops::read_sums, of_positive, random({2, 4}, 6), random({2, 4, 3}, 7));
}

TEST_CASE("linear attention")
{
    const auto q = random({2, 2, 2}, 1), k = random({2, 3, 2}, 2), v = random({2, 3, 2}, 3);
    for (const bool causal : {false, true}) {
        const auto of_features = [=](const auto& operation, const auto& queries, const auto& keys, const auto& values) {
            return operation(ops::exp(queries), ops::exp(keys), values, real, causal,
                             ops::rule_of_sums{causal ? 0.9 : 1.0, true});
        };
        CHECK_CURVATURE(ops::linear_attention, of_features, q, k, v);
    }
    const auto of_gates = [](const auto& operation, const auto& queries, const auto& gates, const auto& keys,
                             const auto& values) {
        const auto sums = ops::carried_sums(ops::log_sigmoid(gates));
        return operation(ops::exp(queries), ops::concat(sums, ops::exp(keys)), values, real, std::size_t{1}, true);
    };
    CHECK_CURVATURE(ops::gated_linear_attention, of_gates, q, random({2, 3, 1}, 4), k, v);
    const auto rates = random({2, 3, 1}, 5);
    CHECK_CURVATURE(ops::correct_values, with(real, 0.9), k, v, rates);
    const auto by_gates = [](const auto& operation, const auto& gates, const auto& keys, const auto& values,
                             const auto& beta) {
        return operation(ops::concat(ops::carried_sums(ops::log_sigmoid(gates)), keys), values, beta, real);
    };
    CHECK_CURVATURE(ops::correct_values_by_gates, by_gates, random({2, 3, 1}, 4), k, v, rates);
}

TEST_CASE("whole steps")
{
    const auto query = random({2, 4}, 1);
    const auto keys = random({2, 3, 4}, 2), values = random({2, 3, 2}, 3);
    CHECK_CURVATURE(ops::additive_step, both(real), query, keys, random({4}, 4), values);
    CHECK_CURVATURE(
        ops::additive_temporal_step_op{},
        [](const auto& step, const auto&... x) {
            const auto [context, weights, history] = step(x..., real);
            return std::tuple{context, weights, history};
        },
        query, keys, random({4}, 4), values, random({2, 3}, 5));
    CHECK_CURVATURE(ops::dot_step, both(real), query, keys, values);
    CHECK_CURVATURE(ops::per_dimension_step, both(real, ops::weights_of_step::returned), query, keys, random({4, 2}, 6),
                    values);
}

TEST_CASE("recurrent steps")
{
    const lengths ends{1, 0};
    const ops::sentence_ends some{&ends, 0};
    const auto hidden = random({2, 2}, 1);
    CHECK_CURVATURE(ops::gru, with(some), random({2, 6}, 2), hidden, random({2, 4}, 3), random({2, 2}, 4));
    CHECK_CURVATURE(ops::gru_reset_after, with(some), random({2, 6}, 5), hidden, random({2, 6}, 6), random({2}, 7));
    CHECK_CURVATURE(ops::lstm, both(some), random({2, 8}, 8), hidden, random({2, 2}, 9), random({2, 8}, 10));
    CHECK_CURVATURE(ops::coverage_gru, with(), random({2, 6}, 11), random({2, 3}, 12), random({6}, 13),
                    random({2, 3, 6}, 14), random({2, 3, 2}, 15));
}

TEST_CASE("functions of scores, and tiles")
{
    const auto table = random({4}, 1);
    const auto change = [](auto e, score_index p) { return 3 * tanh((e - 0.1 * abs(p.query - p.key)) / 3); };
    const auto look_up = [](auto e, score_index p, const auto& t) { return e * t(p.key) + t(p.key); };
    CHECK_CURVATURE(ops::modify_op{change}, with(ops::rows_of_places{2}), random({2, 3}, 2));
    CHECK_CURVATURE(ops::modify_op{look_up}, with(ops::rows_of_places{2}), random({2, 3}, 2), table);
    const auto q = random({2, 3, 4}, 3), k = random({2, 3, 2}, 4), v = random({2, 3, 2}, 5);
    const ops::heads_of how{2, 1, 0.7};
    CHECK_CURVATURE(ops::attend_tiled, with(real, how), q, k, v);
    CHECK_CURVATURE((ops::attend_tiled_op{change, not_behind{}}), with(real, how), q, k, v);
    using kernels::tiles::additive, kernels::tiles::softmax, kernels::tiles::unmasked, kernels::tiles::unmodified;
    CHECK_CURVATURE((ops::attend_tiled_op{look_up, unmasked{}, softmax{}, additive{}}), with(real, how), q, k, v,
                    random({4}, 6), random({2}, 7), table);
    const auto in_order = [](const auto& attend, const auto& queries, const auto& keys, const auto& values,
                             const auto& history, const auto& looked_up) {
        const auto [contexts, after] = attend(queries, keys, values, history, looked_up, real, ops::heads_of{});
        return std::tuple{contexts, after};
    };
    CHECK_CURVATURE((ops::attend_in_order_op{look_up, unmasked{}, ops::modulated_by_past{0.8, 0.1}}), in_order,
                    random({2, 3, 2}, 8), k, v, random({2, 3}, 9), table);
}
