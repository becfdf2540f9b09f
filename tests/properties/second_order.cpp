// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/nn/convolution.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/gated_convolution.hpp>
#include <heed/nn/layer_norm.hpp>
#include <heed/seq2seq/convolutional.hpp>
#include <heed/seq2seq/parts.hpp>
#include <support/curvature.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

// Second-order derivatives of every operation, by name. This file covers values, slices, windows, products and losses;
// second_order_steps.cpp covers scores, weights and whole steps. tests/scripts/second_order.sh finds operations that
// both lack.

using namespace heed;
using support::random;
using support::with;

namespace {

const lengths real{3, 2};
const window where{{1, 0}, lengths{2, 1}, 2};
constexpr std::uint64_t stream = 5;

/// Calls the operation with positive numbers.
constexpr auto of_positive = [](const auto& operation, const auto&... x) { return operation(ops::exp(x)...); };

boolean_mask<2> some_mask() { return boolean_mask<2>(array<bool, 2>{{true, false, true}, {true, true, false}}); }

ops::expected_words<double> some_words()
{
    ops::expected_words<double> targets{word_ids(2, 3), {1, 0.5, 0, 2, 1, 1}};
    targets.words.ids = {1, 0, 3, 2, 2, 3};
    return targets;
}

}  // namespace

TEST_CASE("elementwise operations of one argument")
{
    const auto x = random({2, 3}, 1);
    CHECK_CURVATURE(ops::tanh, with(), x);
    CHECK_CURVATURE(ops::sigmoid, with(), x);
    CHECK_CURVATURE(ops::log_sigmoid, with(), x);
    CHECK_CURVATURE(ops::exp, with(), x);
    CHECK_CURVATURE(ops::log, of_positive, x);
    CHECK_CURVATURE(ops::relu, with(), x);
    CHECK_CURVATURE(ops::gelu, with(), x);
    CHECK_CURVATURE(ops::gelu_erf, with(), x);
    CHECK_CURVATURE(ops::silu, with(), x);
    CHECK_CURVATURE(ops::elu_plus_one, with(), x);
    CHECK_CURVATURE(ops::square, with(), x);
    CHECK_CURVATURE(ops::scale, with(0.7), x);
    CHECK_CURVATURE(ops::scale_gradient, with(0.7), x);
    CHECK_CURVATURE(ops::dropout, with(0.4, stream), x);
}

TEST_CASE("elementwise operations of two arguments")
{
    const auto a = random({2, 3}, 1), b = random({2, 3}, 2), column = random({2, 1}, 3);
    const auto row = random({3}, 4);
    CHECK_CURVATURE(ops::add, with(), a, b);
    CHECK_CURVATURE(ops::add, with(), a, row);
    CHECK_CURVATURE(ops::subtract, with(), a, b);
    CHECK_CURVATURE(ops::subtract, with(), a, column);
    CHECK_CURVATURE(ops::multiply, with(), a, b);
    CHECK_CURVATURE(ops::multiply, with(), a, row);
    CHECK_CURVATURE(ops::divide, of_positive, a, b);
    CHECK_CURVATURE(ops::divide, of_positive, a, column);
    CHECK_CURVATURE(ops::add_same_shape, with(), a, b);
    CHECK_CURVATURE(ops::multiply_alike, with(), a, b);
    CHECK_CURVATURE(ops::decay_history, with(), a, b);
    CHECK_CURVATURE(ops::logaddexp, with(), a, b);
    CHECK_CURVATURE(ops::subtract_history, with(), a, b);
    CHECK_CURVATURE(ops::scaled_sum, with(0.3, -2.0), a, b);
    CHECK_CURVATURE(ops::subtract_scaled_history, with(0.3), a, b);
    CHECK_CURVATURE(ops::fade, with(0.7), a, b);
    CHECK_CURVATURE(ops::advance_means, with(), a, b);
}

TEST_CASE("the second argument is broadcast over the positions of the first")
{
    const auto a = random({2, 3, 4}, 1);
    const auto b = random({2, 4}, 2);
    CHECK_CURVATURE(ops::add_per_position, with(), a, b);
    CHECK_CURVATURE(ops::tanh_of_sum_per_position, with(), a, b);
    CHECK_CURVATURE(ops::subtract_per_position, with(), a, b);
    CHECK_CURVATURE(ops::multiply_per_position, with(), a, b);
}

TEST_CASE("slices of tensors")
{
    const auto x = random({2, 3, 4}, 1), y = random({2, 2, 4}, 2);
    const auto matrix = random({4, 3}, 3);
    CHECK_CURVATURE(ops::concat, with(), matrix, random({4, 2}, 4));
    CHECK_CURVATURE(ops::append, with(), x, y);
    CHECK_CURVATURE(ops::step_of, with(std::size_t{1}), x);
    CHECK_CURVATURE(ops::block, with(std::size_t{1}), x);
    CHECK_CURVATURE(ops::reshaped, with(shape_of_rank<2>{2, 12}), x);
    CHECK_CURVATURE(ops::slice, with(std::size_t{1}, std::size_t{1}, std::size_t{3}), x);
    CHECK_CURVATURE(ops::permuted, with(2, 0, 1), x);
    CHECK_CURVATURE(ops::slice_rows, with(std::size_t{1}, std::size_t{3}), matrix);
    CHECK_CURVATURE(ops::positions_between, with(std::size_t{1}, std::size_t{2}), random({1, 4}, 5));
    CHECK_CURVATURE(ops::join_positions, with(lengths{2, 1}), x, random({2, 5, 4}, 6));
    CHECK_CURVATURE(ops::columns_of, with(std::vector<std::uint32_t>{2, 0, 2}), matrix);
    CHECK_CURVATURE(ops::slice_columns, with(std::size_t{1}, std::size_t{3}), x);
    CHECK_CURVATURE(ops::rows_of, with(std::vector<std::size_t>{1, 1, 3}), matrix);
    CHECK_CURVATURE(ops::repeat, with(std::size_t{3}), random({4}, 6));
    CHECK_CURVATURE(ops::swap_axes, with(), x);
    CHECK_CURVATURE(ops::transpose, with(), x);
    CHECK_CURVATURE(ops::gather, with(array<double, 3>{{{2}, {0}}, {{1}, {1}}}), random({2, 3}, 7));
    CHECK_CURVATURE(ops::mix_heads, with(), x, random({2, 3}, 8));
    CHECK_CURVATURE(ops::lookup, with(some_words().words), random({4, 3}, 9));
}

TEST_CASE("lists of tensors")
{
    const auto a = random({2, 3}, 1), b = random({2, 3}, 2);
    const auto x = random({2, 3, 4}, 3), y = random({2, 2, 4}, 4);
    const auto of_both = [](const auto& operation, const auto& u, const auto& v) {
        return operation(std::vector{u, v, u});
    };
    CHECK_CURVATURE(ops::stack, of_both, a, b);
    CHECK_CURVATURE(ops::concat_heads, of_both, a, random({2, 2}, 2));
    CHECK_CURVATURE(ops::append_all, of_both, x, y);
    const auto of_parts = [](const auto& split, const auto& u) {
        const auto parts = split(u, std::size_t{2});
        return ops::multiply(parts[0], parts[1]);
    };
    CHECK_CURVATURE(ops::split_heads, of_parts, x);
}

TEST_CASE("masks and windows")
{
    const auto e = random({2, 3}, 1);
    const auto x = random({2, 3, 4}, 2);
    CHECK_CURVATURE(
        ops::masked_fill, [](const auto& hide, const auto& v) { return ops::exp(hide(v, some_mask())); }, e);
    CHECK_CURVATURE(ops::zero_masked, with(some_mask()), x);
    CHECK_CURVATURE(ops::add_mask, with(), x, e);
    CHECK_CURVATURE(ops::clear_padding, with(real), x);
    CHECK_CURVATURE(ops::clear_ended, with(real), random({3, 2, 4}, 3));
    CHECK_CURVATURE(ops::window_of, with(where), x);
    CHECK_CURVATURE(ops::put_window, with(where), e, random({2, 2}, 4));
    CHECK_CURVATURE(ops::spread_window, with(where, std::size_t{3}), random({2, 2, 4}, 5));
    CHECK_CURVATURE(ops::slide, with(), random({2, 6}, 6), random({2, 3}, 7));
    CHECK_CURVATURE(ops::neighborhood, with(std::size_t{1}), e);
    CHECK_CURVATURE(ops::convolve, with(), e, random({2, 3}, 8));
    CHECK_CURVATURE(ops::unfold, with(std::size_t{2}), x);
    CHECK_CURVATURE(ops::pool_windows, with(std::size_t{2}), x, e);
    CHECK_CURVATURE(ops::patches, with(grid{2, 2}, std::size_t{3}, std::size_t{1}), random({2, 4, 2}, 9));
    CHECK_CURVATURE(ops::convolve_steps, with(std::size_t{1}), random({3, 2, 2}, 10), random({4, 3}, 11),
                    random({3}, 12));
}

TEST_CASE("sums and norms")
{
    const auto x = random({2, 3, 4}, 1);
    const auto e = random({2, 3}, 2);
    CHECK_CURVATURE(ops::sum_last, with(), x);
    CHECK_CURVATURE(ops::dot, with(), e, random({2, 3}, 3));
    CHECK_CURVATURE(ops::multiply_parts, with(), x, random({2, 3, 2}, 5));
    CHECK_CURVATURE(ops::rms_norm, with(1e-3), x, random({2}, 6));
    CHECK_CURVATURE(ops::layer_norm, with(1e-3), x, random({4}, 7), random({4}, 8));
    CHECK_CURVATURE(ops::normalize_l2, with(), e);
    CHECK_CURVATURE(ops::grouped_sum, with(), random({2, 3, 2}, 9), x);
}

TEST_CASE("products")
{
    const auto x = random({2, 3, 4}, 1);
    CHECK_CURVATURE(ops::linear, with(), random({2, 3}, 2), random({3, 4}, 3));
    CHECK_CURVATURE(ops::linear, with(), random({2, 3}, 2), random({3, 4}, 3), random({4}, 4));
    CHECK_CURVATURE(ops::addmm, with(), random({2, 4}, 5), random({2, 3}, 6), random({3, 4}, 7));
    CHECK_CURVATURE(ops::matvec, with(), x, random({4}, 8));
    CHECK_CURVATURE(ops::add_outer, with(), x, random({2, 3}, 9), random({4}, 10));
    CHECK_CURVATURE(ops::dot_per_position, with(), random({2, 4}, 11), x);
    CHECK_CURVATURE(ops::weighted_sum, with(), random({2, 3}, 12), x);
    CHECK_CURVATURE(ops::elementwise_sum, with(), random({2, 3, 4}, 13), x);
    CHECK_CURVATURE(ops::bmm_nt, with(), x, random({2, 5, 4}, 14));
    CHECK_CURVATURE(ops::bmm, with(), random({6, 5}, 15), random({2, 5, 4}, 16));
    CHECK_CURVATURE(ops::match_matrix, with(), x, random({2, 2, 4}, 17));
    CHECK_CURVATURE(ops::match_per_position, with(), random({2, 4}, 18), x);
    CHECK_CURVATURE(ops::glu, with(), x);
    CHECK_CURVATURE(ops::maxout, with(), x);
    CHECK_CURVATURE(ops::gated_residual, with(lengths{2, 1, 2}), random({2, 3, 2}, 19), x);
}

TEST_CASE("losses")
{
    const auto x = random({2, 3}, 1), t = random({2, 3}, 2), weights = random({2, 3}, 3);
    CHECK_CURVATURE(ops::mean_squared_error, with(), x, t);
    CHECK_CURVATURE(
        ops::mean_squared_error,
        [](const auto& loss, const auto& u, const auto& v, const auto& w) { return loss(u, v, ops::exp(w)); }, x, t,
        weights);
    const auto of_probabilities = [](const auto& loss, const auto& u, const auto& v, const auto&... w) {
        return loss(u, ops::sigmoid(v), w...);
    };
    CHECK_CURVATURE(ops::binary_cross_entropy, of_probabilities, x, t);
    CHECK_CURVATURE(ops::binary_cross_entropy, of_probabilities, x, t, weights);
    const auto logits = random({2, 3, 4}, 4);
    CHECK_CURVATURE(ops::cross_entropy, with(some_words(), 0.1), logits);
    CHECK_CURVATURE(ops::cross_entropy, with(some_words(), 0.1), random({2, 3, 2}, 5), random({2, 4}, 6),
                    random({4}, 7));
    CHECK_CURVATURE(ops::cross_entropy_per_word, with(some_words(), 0.1), logits);
    CHECK_CURVATURE(ops::symmetric_kl, with(some_words()), logits, random(logits.shape(), 9));
}

TEST_CASE("penalties on weights")
{
    const auto weights = random({3, 2, 4}, 1);
    const lengths source{4, 3}, target{3, 2};
    const auto of_weights = [&](const auto& penalty, const auto& e) {
        return penalty(ops::sigmoid(e), source, target);
    };
    CHECK_CURVATURE(ops::doubly_stochastic_penalty, of_weights, weights);
    CHECK_CURVATURE(ops::coverage_penalty, of_weights, weights);
    CHECK_CURVATURE(ops::monotone_penalty, of_weights, weights);
    const auto links = random({2, 3, 4}, 2);
    CHECK_CURVATURE(
        ops::guided,
        [&](const auto& guided, const auto& e) { return guided(ops::sigmoid(e), links, source, target, 1e-3); },
        weights);
}
