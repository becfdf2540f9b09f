// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <vector>

// Biases of multi_head's projections: those of a column of ones beside the input.

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 2, T = 4, S = 3, D = 5, n = 2, G = 1, K = 3, V = 2, O = 4;

auto heads() { return std::vector(n, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}); }

/// x with a 1 behind each row.
array<double, 3> with_one(const array<double, 3>& x)
{
    const auto [rows, columns, width] = shape_of(x);
    array<double, 3> y({rows, columns, width + 1}, 1.0);
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            for (std::size_t k = 0; k < width; ++k) y(i, j, k) = x(i, j, k);
    return y;
}

/// W with b as its last row.
array<double, 2> with_row(const array<double, 2>& W, const array<double, 1>& b)
{
    array<double, 2> y({shape_of(W)[0] + 1, shape_of(W)[1]});
    std::copy(W.begin(), W.end(), y.begin());
    std::copy(b.begin(), b.end(), y.begin() + static_cast<std::ptrdiff_t>(W.size()));
    return y;
}

const auto W_Q = random({D, n*K}, 1), W_K = random({D, G*K}, 2), W_V = random({D, G*V}, 3), W_O = random({n * V, O}, 4);
const auto b_Q = random({n * K}, 5), b_K = random({G * K}, 6), b_V = random({G * V}, 7), b_O = random({O}, 8);

}  // namespace

TEST_CASE("a bias is the weight of a one behind the input")
{
    const multi_head with{heads(), W_Q, W_K, W_V, W_O, per_head::unchanged{}, biases{b_Q, b_K, b_V, b_O}};
    const multi_head without{heads(), with_row(W_Q, b_Q), with_row(W_K, b_K), with_row(W_V, b_V), W_O};
    const auto x = random({B, T, D}, 10), q = random({B, S, D}, 11);
    const lengths real{4, 2};
    const auto memory = with.on(x, real);
    const auto other = without.on(with_one(x), real);
    array<double, 3> must = without(other, with_one(q));
    for (std::size_t i = 0; i < must.size(); ++i) must.data()[i] += b_O(i % O);
    CHECK(support::distance(with(memory, q), must) < 1e-14);

    for (std::size_t s = 0; s < S; ++s) {
        const auto answer = with.step(memory, ops::step_of(q, s), with.start(memory));
        const auto expected = without.step(other, ops::step_of(with_one(q), s), without.start(other));
        CHECK(support::distance(answer.weights, expected.weights) < 1e-14);
        CHECK(support::distance(answer.context, ops::step_of(must, s)) < 1e-14);
        CHECK(support::distance(with.read(memory, ops::step_of(q, s), with.start(memory)).context,
                                ops::step_of(must, s)) < 1e-14);
        CHECK(support::distance(with.compose(memory, ops::step_of(q, s), with.start(memory)).context,
                                ops::step_of(must, s)) < 1e-14);
    }

    // A memory that grows has the biases, too.
    const auto sentence = random({1, T, D}, 12), asks = random({1, S, D}, 13);
    const auto grown =
        with.extend(with.on(ops::positions_between(sentence, 0, 3)), ops::positions_between(sentence, 3, 1));
    CHECK(support::distance(with(grown, asks), with(with.on(sentence), asks)) < 1e-14);
}

TEST_CASE("their gradient, and their names")
{
    multi_head model{heads(), W_Q, W_K, W_V, W_O, per_head::unchanged{}, biases{b_Q, b_K, b_V, b_O}};
    const auto x = random({B, T, D}, 10), q = random({B, S, D}, 11);
    const lengths real{4, 2};
    const auto found = ad::grad_check(model, [&](auto&, const auto& m) {
        const auto y = m(m.on(x, real), q);
        return ops::inner(y, support::uneven(y.shape()));
    });
    CHECK_MESSAGE(bool(found), found.text());
    std::vector<std::string> names;
    for_each_parameter(model, [&](const std::string& name, const auto&) { names.push_back(name); });
    CHECK(names ==
          std::vector<std::string>{"W_Q", "W_K", "W_V", "W_O", "bias.b_Q", "bias.b_K", "bias.b_V", "bias.b_O"});
}

TEST_CASE("a bias that does not fit, and a state with its word")
{
    const auto x = random({B, T, D}, 10), q = random({B, S, D}, 11);
    const multi_head wrong{heads(), W_Q, W_K, W_V, W_O, per_head::unchanged{}, biases{b_K, b_K, b_V, b_O}};
    CHECK(
        support::contains(support::message_of<shape_error>([&] { wrong(wrong.on(x), q); }), "linear: the bias is [3]"));
    static_assert(sizeof(no_biases) == 1);
}

TEST_CASE("a policy's bias, or none")
{
    const auto x = random({2, 3}, 1), W = random({3, 4}, 2);
    const auto b = random({4}, 3);
    CHECK(support::same_bits(detail::linear_with(x, W, b), ops::linear(x, W, b)));
    CHECK(support::same_bits(detail::linear_with(x, W, no_bias{}), ops::linear(x, W)));
    CHECK(parameter_count(score::additive{W, random({5, 4}, 4), b}) == 12 + 20 + 4);
    CHECK(parameter_count(score::additive{W, random({5, 4}, 4), b, b}) == 12 + 20 + 4 + 4);
}
