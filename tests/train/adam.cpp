// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cmath>
#include <type_traits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/nn/init.hpp>
#include <heed/train/adam.hpp>
#include <support/approx.hpp>
#include <support/one_table.hpp>

using namespace heed;

template <class Matrix>
using table = support::one_table<Matrix>;
constexpr auto numbers = support::gaussian_numbers;

TEST_CASE("Adam with clipping against the formula, written out")
{
    table<array<double, 2>> module{numbers(1, 3, 5)};
    const auto c = numbers(2, 3, 5);
    std::vector<double> theta(module.E.begin(), module.E.end()), m(15, 0.0), v(15, 0.0);
    train::adam<double> optimiser({0.1, 0.8, 0.95, 1e-7});
    ad::tape<double> on;
    for (int t = 1; t <= 7; ++t) {
        on.clear();
        const auto lifted = ad::lift(on, module);
        on.backward(ops::inner(ops::square(lifted.E), c));
        const double norm = optimiser.step(module, lifted, on, 2.0);

        std::vector<double> g(15);
        double squares = 0;
        for (std::size_t i = 0; i < 15; ++i) {
            g[i] = 2 * theta[i] * c.data()[i];
            squares += g[i] * g[i];
        }
        CHECK(norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
        const double scale = std::sqrt(squares) > 2 ? 2 / std::sqrt(squares) : 1;
        for (std::size_t i = 0; i < 15; ++i) {
            m[i] = 0.8 * m[i] + 0.2 * scale * g[i];
            v[i] = 0.95 * v[i] + 0.05 * scale * g[i] * scale * g[i];
            theta[i] -= 0.1 * (m[i] / (1 - std::pow(0.8, t))) / (std::sqrt(v[i] / (1 - std::pow(0.95, t))) + 1e-7);
            CHECK(module.E.data()[i] == support::approx(theta[i]));
        }
    }
}

TEST_CASE("a table that is looked up has a sparse gradient: only touched rows, repeated words added")
{
    const auto E = numbers(3, 6, 4);
    ad::tape<double> on;
    const auto lifted = on.parameter(E);
    word_ids words(2, 2);
    words(0, 0) = 4, words(0, 1) = 1, words(1, 0) = 4, words(1, 1) = 4;
    const auto y = ops::lookup(lifted, words);
    array<double, 3> c(shape_of_rank<3>{2, 2, 4});
    for (std::size_t i = 0; i < 16; ++i) c.data()[i] = 1.0 + static_cast<double>(i);
    on.backward(ops::inner(y, c));

    const auto sparse = ad::gradient_rows(lifted);
    REQUIRE(sparse.ids.size() == 2);
    CHECK(sparse.ids[0] == 1u);
    CHECK(sparse.ids[1] == 4u);
    for (std::size_t k = 0; k < 4; ++k) {
        const auto at = [&](std::size_t i) { return c.data()[4 * i + k]; };
        CHECK(sparse.rows[k] == at(1));
        CHECK(sparse.rows[4 + k] == at(0) + at(2) + at(3));
    }
    // As a whole table, it is the same with zeros around it.
    const auto dense = on.gradient(lifted);
    for (std::size_t i = 0; i < 6; ++i) {
        for (std::size_t k = 0; k < 4; ++k) {
            const double expected = i == 1 ? sparse.rows[k] : i == 4 ? sparse.rows[4 + k] : 0;
            CHECK(dense.data[4 * i + k] == expected);
        }
    }
}

TEST_CASE("a table that is looked up and multiplied (tied weights) has the sum of both gradients")
{
    table<array<double, 2>> module{numbers(5, 4, 4)};
    word_ids words(1, 3);
    words(0, 0) = 2, words(0, 1) = 0, words(0, 2) = 2;
    const auto c = numbers(6, 3, 4);
    const auto result = ad::grad_check(module, [&](auto&, const auto& lifted) {
        const auto y = ops::block(ops::lookup(lifted.E, words), std::size_t{0});
        return ops::inner(ops::linear(ops::tanh(y), lifted.E), c);
    });
    CHECK_MESSAGE(result, result.text());
}

TEST_CASE("lazy: rows that the batch does not touch stay, and their moments wait")
{
    table<array<double, 2>> module{numbers(7, 5, 3)};
    const auto before = module.E;
    train::adam<double> optimiser({0.1});
    ad::tape<double> on;
    for (int t = 0; t < 3; ++t) {
        on.clear();
        const auto lifted = ad::lift(on, module);
        word_ids words(1, 1, t == 0 ? 2u : 3u);
        on.backward(ops::inner(ops::lookup(lifted.E, words), filled<double, 3>({1, 1, 3}, 1.0)));
        optimiser.step(module, lifted, on);
    }
    for (const std::size_t row : {0u, 1u, 4u}) {
        for (std::size_t k = 0; k < 3; ++k) CHECK(module.E(row, k) == before(row, k));
    }
    for (std::size_t k = 0; k < 3; ++k) {
        CHECK(module.E(2, k) == support::approx(before(2, k) - 0.1 / (1 + 1e-8)));  // the default ε is 1e-8
        CHECK(module.E(3, k) < before(3, k) - 0.1);
    }
}

TEST_CASE("a gradient that is not finite changes nothing and is reported by its norm")
{
    table<array<double, 2>> module{numbers(8, 2, 2)};
    const auto before = module.E;
    train::adam<double> optimiser;
    ad::tape<double> on;
    const auto lifted = ad::lift(on, module);
    on.backward(ops::inner(lifted.E, filled<double, 2>({2, 2}, std::nan(""))));
    CHECK(!std::isfinite(optimiser.step(module, lifted, on, 1.0)));
    CHECK(optimiser.steps() == 0);
    for (std::size_t i = 0; i < 4; ++i) CHECK(module.E.data()[i] == before.data()[i]);
}

TEST_CASE("one optimiser serves one model")
{
    table<array<double, 2>> one{numbers(9, 2, 2)}, other{numbers(9, 3, 2)};
    train::adam<double> optimiser;
    ad::tape<double> on;
    const auto step = [&](auto& module) {
        on.clear();
        const auto lifted = ad::lift(on, module);
        on.backward(ops::inner(lifted.E, filled<double, 2>(shape_of(module.E), 1.0)));
        optimiser.step(module, lifted, on);
    };
    step(one);
    CHECK_THROWS_WITH_AS(
        step(other),
        "adam: parameter E with 6 numbers does not fit the optimiser's state, which has E with 4 there; one "
        "optimiser serves one model",
        error);
}
