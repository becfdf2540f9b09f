// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/adamw.hpp>
#include <support/approx.hpp>
#include <support/one_table.hpp>
#include <support/tensors.hpp>

using namespace heed;

namespace {

template <class Matrix, class Vector>
struct linear_layer {
    Matrix W;
    Vector b;

    static auto parameters(auto& self, auto&& visit) { return ::linear_layer{visit("W", self.W), visit("b", self.b)}; }
};
template <class Matrix, class Vector>
linear_layer(Matrix, Vector) -> linear_layer<Matrix, Vector>;

auto make_layer() { return linear_layer{support::random({3, 5}, 1), support::random({5}, 2)}; }

/// One step on Σ c ⊙ θ² of both parameters.
template <class Module>
void step(Module& module, auto& optimiser, double clip = INFINITY)
{
    ad::tape<double> on;
    const auto lifted = ad::lift(on, module);
    on.backward(ops::add(ops::inner(ops::square(lifted.W), support::uneven(shape_of_rank<2>{3, 5})),
                         ops::inner(ops::square(lifted.b), support::uneven(shape_of_rank<1>{5}))));
    optimiser.step(module, lifted, on, clip);
}

}  // namespace

TEST_CASE("AdamW against the formula, written out: the decay is no part of the gradient")
{
    auto module = make_layer();
    const auto c = support::uneven(shape_of_rank<2>{3, 5});
    const auto d = support::uneven(shape_of_rank<1>{5});
    std::vector<double> theta(module.W.begin(), module.W.end()), factors(c.begin(), c.end());
    theta.insert(theta.end(), module.b.begin(), module.b.end());
    factors.insert(factors.end(), d.begin(), d.end());
    std::vector<double> m(20, 0.0), v(20, 0.0);
    train::adamw<double> optimiser({.rate = 0.1, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-7, .weight_decay = 0.3});
    for (int t = 1; t <= 7; ++t) {
        double squares = 0;
        for (std::size_t i = 0; i < 20; ++i) squares += std::pow(2 * theta[i] * factors[i], 2);
        const double scale = std::min(1.0, 2 / std::sqrt(squares));
        step(module, optimiser, 2.0);
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
    CHECK(optimiser.state()[1].name == "b");
}

TEST_CASE("what decays is chosen by name and number of axes; what does not moves as with Adam, bit for bit")
{
    std::vector<std::string> asked;
    const auto run = [](auto optimiser) {
        auto module = make_layer();
        for (int i = 0; i < 3; ++i) step(module, optimiser);
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

TEST_CASE("rows of a table that are not looked up do not decay")
{
    support::one_table<array<double, 2>> module{support::gaussian_numbers(7, 5, 3)};
    const auto before = module.E;
    train::adamw<double> optimiser({.rate = 0.1, .weight_decay = 0.5});
    ad::tape<double> on;
    const auto lifted = ad::lift(on, module);
    on.backward(ops::inner(ops::lookup(lifted.E, word_ids(1, 1, 2u)), filled<double, 3>({1, 1, 3}, 1.0)));
    optimiser.step(module, lifted, on);
    for (std::size_t row = 0; row < 5; ++row)
        for (std::size_t k = 0; k < 3; ++k) {
            const double must = row == 2 ? 0.95 * before(row, k) - 0.1 / (1 + 1e-8) : before(row, k);  // ε
            CHECK(module.E(row, k) == support::approx(must));
        }
}
