// SPDX-License-Identifier: BSD-3-Clause
#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/function_of.hpp>
#include <support/gradients.hpp>
#include <support/mechanism_tests.hpp>

using namespace heed;
using support::check_gradient_of;
using support::random;

// Operations of the sparse and random normalizers by finite differences, and attention through them. The inputs avoid
// the kinks.

namespace {

/// Checks f(scores, lengths) on scores [B,T] and [B,T,D]: rows with one position, with all positions, and without any.
template <class F>
void check_of_scores(F&& f, double scale = 1)
{
    const auto with = [&f](const lengths& real) { return [&f, real](const auto& e) { return f(e, real); }; };
    check_gradient_of(with({7, 0, 1, 4}), random({4, 7}, 1, scale));
    check_gradient_of(with({1}), random({1, 1}, 2, scale));
    check_gradient_of(with({0}), random({1, 3}, 3, scale));
    check_gradient_of(with({21, 17}), random({2, 21}, 4, scale));
    check_gradient_of(with({5, 0, 1}), random({3, 5, 2}, 5, scale));
    check_gradient_of(with({4, 3}), random({2, 4, 19}, 6, scale));
}

/// Like check_of_scores, with some scores of -inf, which have a gradient of 0.
template <class F>
void check_with_hidden(F&& f)
{
    const lengths real{6, 4, 3};
    boolean_mask<2> mask(shape_of_rank<2>{3, 6});
    for (const std::size_t seen : {0u, 2u, 3u, 5u, 7u, 8u}) mask[seen] = 1;  // the third row sees nothing
    const auto hidden = [&](const auto& e) { return f(ops::masked_fill(e, mask), real); };
    const auto finite = [&](const auto& e) {  // the loss must not see the -inf that some operations pass on
        return ops::softmax(hidden(e), real);
    };
    check_gradient_of(finite, random({3, 6}, 7));
    check_gradient_of(finite, random({3, 6, 3}, 8));
}

array<double, 2> some_drawn()
{
    array<double, 2> drawn(shape_of_rank<2>{4, 7}, 0.0);
    drawn(0, 6) = drawn(0, 2) = drawn(2, 0) = drawn(3, 1) = 1;
    return drawn;
}

}  // namespace

TEST_CASE("sparsemax, entmax15 and sigmoid weights")
{
    check_of_scores([](const auto& e, const lengths& real) { return ops::sparsemax(e, real); });
    check_of_scores([](const auto& e, const lengths& real) { return ops::sparsemax(e, real); }, 0.1);
    check_of_scores([](const auto& e, const lengths& real) { return ops::entmax15(e, real); });
    check_of_scores([](const auto& e, const lengths& real) { return ops::entmax15(e, real); }, 0.1);
    check_of_scores([](const auto& e, const lengths& real) { return ops::top_k(e, real, 3); });
    const auto with_sink = [](const auto& e, const auto& s) {
        return ops::softmax_with_sink(e, s, lengths{7, 0, 1, 4});
    };
    CHECK_GRADIENT(with_sink, random({4, 7}, 1), random({1}, 2));
    CHECK_GRADIENT(with_sink, random({4, 7, 3}, 3), random({1}, 4));
    check_of_scores([](const auto& e, const lengths& real) { return ops::sigmoid_weights(e, real, 0.3); });
    check_with_hidden([](const auto& e, const lengths& real) { return ops::sparsemax(e, real); });
    check_with_hidden([](const auto& e, const lengths& real) { return ops::entmax15(e, real); });
    check_with_hidden([](const auto& e, const lengths& real) { return ops::sigmoid_weights(e, real, 0.3); });
}

TEST_CASE("scale_from_greatest, checked through functions that ignore the constant")
{
    check_of_scores([](const auto& e, const lengths& real) {
        return ops::softmax(ops::scale_from_greatest(e, e, real, 1.7), real);
    });
    check_with_hidden([](const auto& e, const lengths& real) { return ops::scale_from_greatest(e, e, real, 1.7); });
}

TEST_CASE("log_probability")
{
    const auto drawn = some_drawn();
    const lengths real{7, 0, 1, 4};
    const auto f = [&](const auto& e) { return ops::log_probability(e, drawn, real); };
    check_gradient_of(f, random({4, 7}, 1));
    array<double, 3> drawn_each(shape_of_rank<3>{2, 4, 19}, 0.0);
    for (std::size_t d = 0; d < 19; ++d) drawn_each(0, d % 4, d) = drawn_each(1, d % 3, d) = 1;
    const auto each = [&](const auto& e) { return ops::log_probability(e, drawn_each, lengths{4, 3}); };
    check_gradient_of(each, random({2, 4, 19}, 2));
}

TEST_CASE("noise on the scores")
{
    check_of_scores([](const auto& e, const lengths& real) { return ops::add_gumbel(e, real, 5u, 1.0); });
    check_of_scores([](const auto& e, const lengths& real) { return ops::add_gumbel(e, real, 5u, 0.0); });
    check_with_hidden([](const auto& e, const lengths& real) { return ops::add_gumbel(e, real, 5u, 1.0); });
}

TEST_CASE("dropped weights")
{
    for (const bool renormalize : {false, true}) {
        CAPTURE(renormalize);
        for (const double p : {0.3, 0.9}) {
            CAPTURE(p);
            check_of_scores([=](const auto& e, const lengths& real) {
                return ops::dropout_weights(ops::softmax(e, real), real, p, 3u, renormalize);
            });
        }
    }
}

TEST_CASE("straight_through: the gradient flows only to the second argument, unchanged")
{
    const auto hard = random({3, 4}, 1), soft = random({3, 4}, 2), upstream = random({3, 4}, 3);
    ad::tape<double> on;
    const auto h = on.parameter(hard), s = on.parameter(soft);
    const auto y = ops::straight_through(h, s);
    CHECK(support::same_bits(y, hard));
    CHECK(support::same_bits(ops::straight_through(hard, soft), hard));
    on.backward(ops::dot(y, upstream));
    CHECK(support::same_bits(on.gradient(s), upstream));
    for (std::size_t i = 0; i < 12; ++i) CHECK(on.gradient(h).data[i] == 0);
}

TEST_CASE("sample and argmax have no gradient")
{
    ad::tape<double> on;
    const auto scores = random({2, 5}, 1);
    const lengths real{5, 3};
    const auto e = on.parameter(scores);
    CHECK(!ops::argmax(e, real).wanted());
    CHECK(!ops::sample(e, real, 1u).wanted());
    CHECK(support::same_bits(ops::sample(e, real, 1u), ops::sample(scores, real, 1u)));
    CHECK(support::same_bits(ops::argmax(e, real), ops::argmax(scores, real)));
}

TEST_CASE("part of a batch draws the same samples as the whole batch, also in the backward pass")
{
    const lengths real{7, 5, 6, 7};
    const auto scores = random({4, 7, 2}, 1), upstream = random({4, 7, 2}, 2);
    const std::size_t first = 1, rows = 2, row = 7 * 2;
    const auto cut = [&](const array<double, 3>& x) {
        array<double, 3> y(shape_of_rank<3>{rows, 7, 2});
        std::copy_n(x.data() + first * row, y.size(), y.data());
        return y;
    };
    const auto some = cut(scores), pulled = cut(upstream);
    const auto check = [&](const auto& f) {
        const auto run = [&f](const auto& e, const lengths_view& n, const auto& d) {
            ad::tape<double> on;
            const auto x = on.parameter(e);
            const auto y = f(x, n);
            CHECK(support::same_bits(f(e, n), y));
            if (!y.wanted()) return std::pair{copy_of(y.value()), filled<double, 3>(shape_of(e), 0.0)};
            on.backward(ops::dot(y, d));
            return std::pair{copy_of(y.value()), copy_of(on.gradient(x))};
        };
        const auto whole = run(scores, real, upstream), part = run(some, lengths_view(real).rows(first, rows), pulled);
        for (std::size_t i = 0; i < rows * row; ++i) {
            CHECK(part.first.data()[i] == whole.first.data()[first * row + i]);
            CHECK(part.second.data()[i] == whole.second.data()[first * row + i]);
        }
    };
    check([](const auto& e, const lengths_view& n) { return ops::sample(e, n, 5u); });
    check([](const auto& e, const lengths_view& n) { return ops::add_gumbel(e, n, 5u, 1.0); });
    for (const bool renormalize : {false, true}) {
        check([=](const auto& e, const lengths_view& n) {
            return ops::dropout_weights(ops::exp(e), n, 0.5, 5u, renormalize);
        });
    }
}

// The tests of each normalizer check its contracts and so its gradient; this file covers only cases that they do not
// instantiate.
TEST_CASE("attention over soft draws, and over dropped weights of temporal modulation")
{
    const auto W = random({3, 4}, 11), U = random({5, 4}, 12);
    support::check_gradients(attention{score::additive{W, U, random({4}, 14, 2.0)},
                                       normalize::gumbel{.seed = 5, .tau = 0.8, .straight_through = false},
                                       combine::weighted_sum{}},
                             support::plain_query{3}, 5);
    support::check_gradients(attention{score::additive_per_dimension{W, U, random({4, 5}, 23)},
                                       normalize::dropout{0.3, 7, normalize::temporal{}, {.renormalize = true}},
                                       combine::elementwise_sum{}},
                             support::plain_query{3}, 5);
}

TEST_CASE("top_k with k = 0")
{
    const normalize::top_k none{0};
    CHECK_THROWS_WITH_AS((void)none(random({1, 3}, 1), no_state{}, plain_step_context{lengths{3}}),
                         "top_k: k is 0, which leaves no weights; give at least 1", error);
}
