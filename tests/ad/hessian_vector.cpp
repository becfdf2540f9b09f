// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/hessian_vector.hpp>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/second_order.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

// Arguments and results of hessian_vector. The second order of every operation is checked by name in
// properties/second_order.cpp and properties/second_order_steps.cpp, and next to its gradient (support/gradients.hpp);
// mechanisms in properties/hessian_vector_attention.cpp, complete models in properties/translator_second_order.cpp.

using namespace heed;
using support::random;

namespace {

/// Additive attention of a few queries over a few annotations.
auto additive()
{
    return attention{score::additive{random({3, 5}, 1), random({4, 5}, 2), random({5}, 3)}, normalize::softmax{},
                     combine::weighted_sum{}};
}

const auto loss = [](auto& tape, const auto& attend) {
    const auto memory = attend.on(tape.constant(random({2, 6, 4}, 4)), lengths({6, 3}));
    const auto contexts = attend(memory, tape.constant(random({2, 2, 3}, 5)));
    return ops::dot(ops::multiply(contexts, contexts), support::uneven(shape_of_rank<3>{2, 2, 4}));
};

double dot(const std::vector<double>& a, const std::vector<double>& b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

/// The second derivative of x³ at x.
template <class T>
double curvature_of_square(T x)
{
    const array<T, 1> at{x}, way{T(1)};
    return static_cast<double>(
        ad::hessian_vector([](auto&, const auto& v) { return ops::dot(v, ops::square(v)); }, at, way).product(0));
}

}  // namespace

TEST_CASE("a quadratic form has exactly the Hessian of its matrix")
{
    const array<double, 2> A{{2, -1, 0.5}, {3, 4, 1}, {-2, 0.25, 8}};  // ℓ = ½ x A xᵀ: H = ½ (A + Aᵀ)
    const array<double, 2> x{{1, -2, 4}}, v{{0.5, 2, -1}};
    const auto form = [&](auto&, const auto& at) { return ops::dot(ops::scale(ops::linear(at, A), 0.5), at); };
    const auto [value, gradient, product] = ad::hessian_vector(form, x, v);
    double expected = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        double g = 0, h = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            expected += 0.5 * x(0, i) * A(i, j) * x(0, j);
            g += 0.5 * (A(i, j) + A(j, i)) * x(0, j);
            h += 0.5 * (A(i, j) + A(j, i)) * v(0, j);
        }
        CHECK(gradient(0, i) == g);
        CHECK(product(0, i) == h);
    }
    CHECK(value == expected);
}

TEST_CASE("a cubic, in float and in double")
{
    CHECK(curvature_of_square(1.5) == 9.0);  // the second derivative of x³ is 6 x
    CHECK(curvature_of_square(1.5f) == 9.0);
}

TEST_CASE("several tensors, passed with std::tie or as a tuple, return a tuple")
{
    auto W = random({3, 4}, 1);
    auto b = random({4}, 2);
    const auto x = random({5, 3}, 3);
    const auto layer = [&](auto&, const auto& matrix, const auto& bias) {
        const auto y = ops::tanh(ops::linear(x, matrix, bias));
        return ops::dot(y, ops::multiply(y, y));
    };
    const auto v = random({3, 4}, 4);
    const auto u = random({4}, 5);
    const auto [value, gradient, product] = ad::hessian_vector(layer, std::tie(W, b), std::tie(v, u));
    CHECK(std::get<0>(gradient).shape() == W.shape());
    support::inputs<array<double, 2>, array<double, 1>> module{{W, b}};
    const auto same =
        ad::hessian_vector([&](auto& on, const auto& m) { return layer(on, std::get<0>(m.at), std::get<1>(m.at)); },
                           module, support::inputs<array<double, 2>, array<double, 1>>{{v, u}});
    CHECK(same.loss == value);
    CHECK(support::same_bits(std::get<0>(same.product.at), std::get<0>(product)));
    CHECK(support::same_bits(std::get<1>(same.product.at), std::get<1>(product)));
    CHECK(support::same_bits(std::get<1>(same.gradient.at), std::get<1>(gradient)));
}

TEST_CASE("a mechanism: finite differences, symmetry, linearity")
{
    auto attend = additive();
    CHECK_SECOND_ORDER(attend, loss);
    const auto u = support::random_like(attend, 21), v = support::random_like(attend, 22);
    const auto Hu = support::numbers_in(ad::hessian_vector(loss, attend, u).product);
    const auto Hv = support::numbers_in(ad::hessian_vector(loss, attend, v).product);
    const double uHv = dot(support::numbers_in(u), Hv), vHu = dot(support::numbers_in(v), Hu);
    CHECK(std::abs(uHv) > 0.01);
    CHECK(uHv == doctest::Approx(vHu).epsilon(1e-12));
    auto both = v;  // 2 u − 3 v
    for (auto& part : numbers_of<double>(both)) {
        for (const auto& one : numbers_of<const double>(std::as_const(u))) {
            if (one.name != part.name) continue;
            for (std::size_t i = 0; i < part.numbers.size(); ++i)
                part.numbers.data[i] = 2 * one.numbers.data[i] - 3 * part.numbers.data[i];
        }
    }
    const auto H = support::numbers_in(ad::hessian_vector(loss, attend, both).product);
    for (std::size_t i = 0; i < H.size(); ++i) CHECK(H[i] == support::approx(2 * Hu[i] - 3 * Hv[i]));
}

TEST_CASE("the loss and the gradient equal those of plain numbers")
{
    const auto attend = additive();
    const auto found = ad::hessian_vector(loss, attend, support::random_like(attend, 22));
    ad::tape<double> on;
    const auto lifted = ad::lift(on, attend);
    const auto value = loss(on, lifted);
    on.backward(value);
    CHECK(found.loss == doctest::Approx(value.data()[0]).epsilon(1e-14));
    CHECK(support::distance(found.gradient.score.W, copy_of(on.gradient(lifted.score.W))) < 1e-13);
    CHECK(support::distance(found.gradient.score.v, copy_of(on.gradient(lifted.score.v))) < 1e-13);
}

TEST_CASE("a reused tape does not allocate again, and several threads agree")
{
    const auto attend = additive();
    const auto v = support::random_like(attend, 22);
    ad::tape<dual_number<double>> on;
    const auto first = ad::hessian_vector(on, loss, attend, v);
    const std::size_t capacity = on.memory().capacity();
    const auto second = ad::hessian_vector(on, loss, attend, v);
    CHECK(on.memory().capacity() == capacity);
    CHECK(support::numbers_in(first.product) == support::numbers_in(second.product));
    set_threads(3);
    const auto third = support::numbers_in(ad::hessian_vector(on, loss, attend, v).product);
    set_threads(1);
    const auto must = support::numbers_in(first.product);
    for (std::size_t i = 0; i < must.size(); ++i) CHECK(third[i] == doctest::Approx(must[i]).epsilon(1e-12));
}

TEST_CASE("a table: words that occur once, twice or not at all, also with a loss of the whole table")
{
    word_ids words(3, 1);
    words.ids = {3, 1, 3};
    const auto E = random({5, 2}, 1), v = random({5, 2}, 2);
    const double occurs[5] = {0, 1, 0, 2, 0};
    for (const double whole : {0.0, 0.5}) {  // ℓ = Σ over words and dimensions of E³ + whole Σ E²
        CAPTURE(whole);
        const auto cubes = [&](auto&, const auto& table) {
            const auto x = ops::lookup(table, words);
            const auto cubic = ops::dot(x, ops::square(x));
            if (whole == 0) return cubic;
            return ops::add(cubic, ops::scale(ops::dot(table, table), whole));
        };
        const auto found = ad::hessian_vector(cubes, E, v);
        for (std::size_t i = 0; i < 5; ++i) {
            for (std::size_t d = 0; d < 2; ++d) {
                const double x = E(i, d);
                CHECK(found.gradient(i, d) == doctest::Approx(3 * occurs[i] * x * x + 2 * whole * x).epsilon(1e-14));
                CHECK(found.product(i, d) == doctest::Approx((6 * occurs[i] * x + 2 * whole) * v(i, d)).epsilon(1e-14));
            }
        }
    }
}

TEST_CASE("a direction of a different shape is rejected")
{
    const auto square = [](auto&, const auto& x) { return ops::dot(x, x); };
    CHECK_THROWS_WITH_AS(ad::hessian_vector(square, random({2, 3}, 1), random({2, 2}, 1)),
                         doctest::Contains("a direction consists of the same tensors as the parameters"), shape_error);
    const auto W = random({2, 3}, 1);
    const auto b = random({3}, 1);
    const auto layer = [](auto&, const auto& x, const auto& y) {
        return ops::dot(ops::linear(random({1, 2}, 2), x, y), random({1, 3}, 3));
    };
    CHECK_THROWS_WITH_AS(ad::hessian_vector(layer, std::tie(W, b), std::tie(W)),
                         doctest::Contains("tensor 1 of the direction has 0 numbers"), shape_error);
}

TEST_CASE("a 0 with a slope is not skipped, and a masked 0 is skipped")
{
    // Weights and gradients of exactly 0 with nonzero slopes.
    const array<double, 2> weights{{0, 1, 0}};
    const auto values = random({1, 3, 2}, 1);
    const auto v = random({1, 3}, 2);
    const auto summed = [&](auto&, const auto& w) {
        const auto c = ops::weighted_sum(w, values);
        return ops::dot(c, c);
    };
    const auto found = ad::hessian_vector(summed, weights, v);
    for (std::size_t j = 0; j < 3; ++j) {
        double expected = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            for (std::size_t d = 0; d < 2; ++d) expected += 2 * values(0, j, d) * values(0, k, d) * v(0, k);
        }
        CHECK(found.product(0, j) == support::approx(expected));
    }
    // Queries of 0.
    const attention attend{score::dot{}, normalize::sigmoid{}, combine::weighted_sum{}};
    support::inputs<array<double, 3>> at{{array<double, 3>(shape_of_rank<3>{1, 2, 2}, 0.0)}};
    CHECK_SECOND_ORDER(at, [&](auto& tape, const auto& lifted) {
        const auto memory = attend.on(tape.constant(values));
        const auto c = attend(memory, std::get<0>(lifted.at));
        return ops::dot(c, c);
    });
    // Scores of -inf: no weight, no slope, no NaN.
    constexpr double none = -std::numeric_limits<double>::infinity();
    const array<double, 2> scores{{1, none, 2}, {none, none, none}};
    const auto hidden = ad::hessian_vector(
        [](auto&, const auto& e) {
            const auto w = ops::softmax(e, lengths({3, 3}));
            return ops::dot(ops::square(w), support::uneven(shape_of_rank<2>{2, 3}));
        },
        scores, random({2, 3}, 3));
    CHECK(support::all_finite(hidden.product));
    CHECK(std::abs(hidden.product(0, 0)) > 1e-3);
    CHECK(hidden.product(0, 1) == 0);
    CHECK(hidden.product(1, 2) == 0);
}

TEST_CASE("through a checkpoint, and with a plain mask")
{
    auto attend = additive();
    const auto h = random({2, 6, 4}, 4);
    const auto q = random({2, 3}, 5);
    CHECK_SECOND_ORDER(attend, [&](auto& tape, const auto& lifted) {
        const auto c = ad::checkpoint(
            [](const auto& m, const auto& x, const auto& query) {
                const auto memory = m.on(x, lengths({6, 3}));
                return m.step(memory, query, m.start(memory)).context;
            },
            lifted, tape.constant(h), tape.constant(q));
        return ops::dot(ops::square(c), support::uneven(c.shape()));
    });
    constexpr double none = -std::numeric_limits<double>::infinity();
    const additive_mask<array<double, 2>> mask{array<double, 2>{{0, none, 0.5, -1, 0, 0}, {0, 0, none, 0, 0, 0}}};
    CHECK_SECOND_ORDER(attend, [&](auto& tape, const auto& lifted) {
        const auto memory = lifted.on(tape.constant(h), lengths({6, 3}));
        const auto found = lifted.step(memory, q, lifted.start(memory), mask);
        return ops::dot(ops::square(found.weights), support::uneven(found.weights.shape()));
    });
}

TEST_CASE("sampled and selected values are constants: the product differentiates the estimator's gradient")
{
    auto e = random({2, 5}, 1);
    support::inputs<array<double, 2>> at{{e}};
    const lengths real({5, 4});
    CHECK_SECOND_ORDER(at, [&](auto&, const auto& lifted) {
        const auto soft = ops::softmax(std::get<0>(lifted.at), real);
        const auto y = ops::straight_through(ops::argmax(std::get<0>(lifted.at), real), ops::square(soft));
        return ops::dot(ops::multiply(y, soft), support::uneven(shape_of_rank<2>{2, 5}));
    });
    CHECK_SECOND_ORDER(at, [&](auto&, const auto& lifted) {
        const auto y = ops::softmax(ops::add_gumbel(std::get<0>(lifted.at), real, std::uint64_t{5}, 0.7), real);
        return ops::dot(ops::square(y), support::uneven(shape_of_rank<2>{2, 5}));
    });
}

TEST_CASE("targets with plain weights work under dual numbers")
{
    auto W = random({4, 6}, 1);
    auto b = random({6}, 2);
    support::inputs<array<double, 2>, array<double, 1>> layer{{W, b}};
    const auto x = random({2, 3, 4}, 3);
    ops::expected_words<double> targets{word_ids(2, 3), {1, 0.5, 0, 2, 1, 1}};
    targets.words.ids = {1, 0, 5, 2, 2, 3};
    CHECK_SECOND_ORDER(layer, [&](auto& tape, const auto& lifted) {
        const auto& [matrix, bias] = lifted.at;
        return ops::cross_entropy(tape.constant(x), matrix, bias, targets, 0.1);
    });
    CHECK_SECOND_ORDER(layer, [&](auto&, const auto& lifted) {
        const auto& [matrix, bias] = lifted.at;
        return ops::cross_entropy(ops::linear(x, matrix, bias), targets, 0.1);
    });
}
