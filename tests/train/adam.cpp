// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/train/adam.hpp>
#include <support/approx.hpp>
#include <support/one_table.hpp>
#include <support/tensors.hpp>

using namespace heed;

template <class Matrix>
using table = support::one_table<Matrix>;
constexpr auto numbers = support::gaussian_numbers;

namespace of_adam {

template <class Matrix, class Vector>
struct linear_layer {
    Matrix W;
    Vector b;

    static auto parameters(auto& self, auto&& visit)
    {
        return of_adam::linear_layer{visit("W", self.W), visit("b", self.b)};
    }
};
template <class Matrix, class Vector>
linear_layer(Matrix, Vector) -> linear_layer<Matrix, Vector>;

inline auto make_layer() { return linear_layer{support::random({3, 5}, 1), support::random({5}, 2)}; }

/// One step on Σ c ⊙ θ² of both parameters.
template <class Module>
void step(Module& module, auto& optimizer, double clip = INFINITY)
{
    ad::tape<double> on;
    const auto lifted = ad::lift(on, module);
    on.backward(ops::add(ops::dot(ops::square(lifted.W), support::uneven(shape_of_rank<2>{3, 5})),
                         ops::dot(ops::square(lifted.b), support::uneven(shape_of_rank<1>{5}))));
    optimizer.step(module, lifted, on, clip);
}

}  // namespace of_adam

TEST_CASE("Adam with clipping equals its formula")
{
    table<array<double, 2>> module{numbers(1, 3, 5)};
    const auto c = numbers(2, 3, 5);
    std::vector<double> theta(module.E.begin(), module.E.end()), m(15, 0.0), v(15, 0.0);
    train::adam<double> optimizer({0.1, 0.8, 0.95, 1e-7});
    ad::tape<double> on;
    for (int t = 1; t <= 7; ++t) {
        on.clear();
        const auto lifted = ad::lift(on, module);
        on.backward(ops::dot(ops::square(lifted.E), c));
        const double norm = optimizer.step(module, lifted, on, 2.0);

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

TEST_CASE("a table that is only looked up has a sparse gradient: used rows only, with repeated words added")
{
    const auto E = numbers(3, 6, 4);
    ad::tape<double> on;
    const auto lifted = on.parameter(E);
    word_ids words(2, 2);
    words(0, 0) = 4, words(0, 1) = 1, words(1, 0) = 4, words(1, 1) = 4;
    const auto y = ops::lookup(lifted, words);
    array<double, 3> c(shape_of_rank<3>{2, 2, 4});
    for (std::size_t i = 0; i < 16; ++i) c.data()[i] = 1.0 + static_cast<double>(i);
    on.backward(ops::dot(y, c));

    const auto sparse = ad::gradient_rows(lifted);
    REQUIRE(sparse.ids.size() == 2);
    CHECK(sparse.ids[0] == 1u);
    CHECK(sparse.ids[1] == 4u);
    for (std::size_t k = 0; k < 4; ++k) {
        const auto at = [&](std::size_t i) { return c.data()[4 * i + k]; };
        CHECK(sparse.rows[k] == at(1));
        CHECK(sparse.rows[4 + k] == at(0) + at(2) + at(3));
    }
    // Read as a whole table, it has the same rows and zeros elsewhere.
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
        return ops::dot(ops::linear(ops::tanh(y), lifted.E), c);
    });
    CHECK_MESSAGE(result, result.text());
}

TEST_CASE("lazy Adam: rows that a batch does not use keep their values and moments")
{
    table<array<double, 2>> module{numbers(7, 5, 3)};
    const auto before = module.E;
    train::adam<double> optimizer({0.1});
    ad::tape<double> on;
    for (int t = 0; t < 3; ++t) {
        on.clear();
        const auto lifted = ad::lift(on, module);
        word_ids words(1, 1, t == 0 ? 2u : 3u);
        on.backward(ops::dot(ops::lookup(lifted.E, words), filled<double, 3>({1, 1, 3}, 1.0)));
        optimizer.step(module, lifted, on);
    }
    for (const std::size_t row : {0u, 1u, 4u}) {
        for (std::size_t k = 0; k < 3; ++k) CHECK(module.E(row, k) == before(row, k));
    }
    for (std::size_t k = 0; k < 3; ++k) {
        CHECK(module.E(2, k) == support::approx(before(2, k) - 0.1 / (1 + 1e-8)));  // the default ε is 1e-8
        CHECK(module.E(3, k) < before(3, k) - 0.1);
    }
}

TEST_CASE("AdamW equals its formula: the decay is not part of the gradient")
{
    auto module = of_adam::make_layer();
    const auto c = support::uneven(shape_of_rank<2>{3, 5});
    const auto d = support::uneven(shape_of_rank<1>{5});
    std::vector<double> theta(module.W.begin(), module.W.end()), factors(c.begin(), c.end());
    theta.insert(theta.end(), module.b.begin(), module.b.end());
    factors.insert(factors.end(), d.begin(), d.end());
    std::vector<double> m(20, 0.0), v(20, 0.0);
    train::adamw<double> optimizer({.rate = 0.1, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-7, .weight_decay = 0.3});
    for (int t = 1; t <= 7; ++t) {
        double squares = 0;
        for (std::size_t i = 0; i < 20; ++i) squares += std::pow(2 * theta[i] * factors[i], 2);
        const double scale = std::min(1.0, 2 / std::sqrt(squares));
        of_adam::step(module, optimizer, 2.0);
        for (std::size_t i = 0; i < 20; ++i) {
            const double g = scale * 2 * theta[i] * factors[i];
            m[i] = 0.8 * m[i] + 0.2 * g;
            v[i] = 0.95 * v[i] + 0.05 * g * g;
            theta[i] *= 1 - 0.1 * 0.3;
            theta[i] -= 0.1 * (m[i] / (1 - std::pow(0.8, t))) / (std::sqrt(v[i] / (1 - std::pow(0.95, t))) + 1e-7);
            const double is = i < 15 ? module.W.data()[i] : module.b.data()[i - 15];
            CHECK(is == support::approx(theta[i]));
        }
    }
    CHECK(optimizer.state()[1].name == "b");
}

TEST_CASE("decay applies by name and number of axes; other parameters are updated as by Adam, bit for bit")
{
    std::vector<std::string> asked;
    const auto run = [](auto optimizer) {
        auto module = of_adam::make_layer();
        for (int i = 0; i < 3; ++i) of_adam::step(module, optimizer);
        return module;
    };
    const auto adam = run(train::adam<double>({.rate = 0.1}));
    const auto matrices = run(train::adamw<double>({.rate = 0.1, .weight_decay = 0.5, .decays = train::matrices_only}));
    const auto named = run(train::adamw<double>(
        {.rate = 0.1, .weight_decay = 0.5, .decays = [&asked](const std::string& name, std::size_t rank) {
             asked.push_back(name + std::to_string(rank));
             return name == "b";
         }}));
    const auto all = run(train::adamw<double>({.rate = 0.1, .weight_decay = 0.5}));
    const auto none = run(train::adamw<double>({.rate = 0.1, .weight_decay = 0}));
    CHECK(support::same_bits(matrices.b, adam.b));
    CHECK(!support::same_bits(matrices.W, adam.W));
    CHECK(support::same_bits(named.W, adam.W));
    CHECK(!support::same_bits(named.b, adam.b));
    CHECK(support::same_bits(all.W, matrices.W));
    CHECK(support::same_bits(all.b, named.b));
    CHECK(support::same_bits(none.W, adam.W));
    CHECK(support::same_bits(none.b, adam.b));
    REQUIRE(asked.size() == 6);
    CHECK(asked[0] == "W2");
    CHECK(asked[1] == "b1");
}

TEST_CASE("table rows that are not looked up do not decay")
{
    support::one_table<array<double, 2>> module{support::gaussian_numbers(7, 5, 3)};
    const auto before = module.E;
    train::adamw<double> optimizer({.rate = 0.1, .weight_decay = 0.5});
    ad::tape<double> on;
    const auto lifted = ad::lift(on, module);
    on.backward(ops::dot(ops::lookup(lifted.E, word_ids(1, 1, 2u)), filled<double, 3>({1, 1, 3}, 1.0)));
    optimizer.step(module, lifted, on);
    for (std::size_t row = 0; row < 5; ++row)
        for (std::size_t k = 0; k < 3; ++k) {
            const double must = row == 2 ? 0.95 * before(row, k) - 0.1 / (1 + 1e-8) : before(row, k);  // ε
            CHECK(module.E(row, k) == support::approx(must));
        }
}
