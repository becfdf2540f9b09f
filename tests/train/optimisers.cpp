// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/train/adadelta.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/adamw.hpp>
#include <heed/train/rates.hpp>
#include <heed/train/sgd.hpp>
#include <support/approx.hpp>
#include <support/one_table.hpp>
#include <support/tensors.hpp>

using namespace heed;

template <class Matrix>
using table = support::one_table<Matrix>;
constexpr auto numbers = support::gaussian_numbers;

namespace {

/// Seven steps on Σ c ⊙ θ², clipped to a norm of 2, against `rule(g, i)`, which returns the change of θ_i.
template <class Optimiser, class Rule>
void check_rule(Optimiser optimiser, Rule rule)
{
    table<array<double, 2>> module{numbers(1, 3, 7)};
    const auto c = numbers(2, 3, 7);
    std::vector<double> theta(module.E.begin(), module.E.end());
    ad::tape<double> on;
    for (std::size_t t = 1; t <= 7; ++t) {
        on.clear();
        const auto lifted = ad::lift(on, module);
        on.backward(ops::inner(ops::square(lifted.E), c));
        optimiser.step(module, lifted, on, 2.0);
        double squares = 0;
        for (std::size_t i = 0; i < 21; ++i) squares += std::pow(2 * theta[i] * c.data()[i], 2);
        const double scale = std::min(1.0, 2 / std::sqrt(squares));
        for (std::size_t i = 0; i < 21; ++i) {
            theta[i] += rule(scale * 2 * theta[i] * c.data()[i], i);
            CHECK(module.E.data()[i] == doctest::Approx(theta[i]).epsilon(1e-12));
        }
    }
    CHECK(optimiser.steps() == 7);
}

}  // namespace

TEST_CASE("gradient descent and AdaDelta against their formulas, written out")
{
    check_rule(train::sgd<double>({0.3}), [](double g, std::size_t) { return -0.3 * g; });
    std::vector<double> G(21), D(21);
    check_rule(train::adadelta<double>({0.9, 1e-4, 0.7}), [&](double g, std::size_t i) {
        G[i] = 0.9 * G[i] + 0.1 * g * g;
        const double step = std::sqrt(D[i] + 1e-4) / std::sqrt(G[i] + 1e-4) * g;
        D[i] = 0.9 * D[i] + 0.1 * step * step;
        return -0.7 * step;
    });
}

TEST_CASE("momentum, Nesterov's and weight decay against PyTorch's formulas, written out")
{
    for (const bool nesterov : {false, true}) {
        std::vector<double> m(21);
        check_rule(train::sgd_with_momentum<double>({.rate = 0.2, .momentum = 0.8, .nesterov = nesterov}),
                   [&](double g, std::size_t i) {
                       m[i] = 0.8 * m[i] + g;
                       return -0.2 * (nesterov ? g + 0.8 * m[i] : m[i]);
                   });
    }

    // Two steps with decay, by hand: θ = 1, gradients 2 and 2.
    const auto two_steps = [](train::momentum_settings with) {
        table<array<double, 2>> module{filled<double, 2>({1, 5}, 1.0)};
        train::sgd_with_momentum<double> optimiser(with);
        ad::tape<double> on;
        for (int t = 0; t < 2; ++t) {
            on.clear();
            const auto lifted = ad::lift(on, module);
            on.backward(ops::inner(lifted.E, filled<double, 2>({1, 5}, 2.0)));
            optimiser.step(module, lifted, on);
        }
        for (std::size_t i = 1; i < 5; ++i) CHECK(module.E(0, i) == module.E(0, 0));
        return module.E(0, 0);
    };
    // g = 2.5, m = 2.5, θ = 0.75;  g = 2.375, m = 3.625, θ = 0.3875
    CHECK(std::abs(two_steps({0.1, 0.5, 0.5}) - 0.3875) < 1e-15);
    // g = 2.5, m = 2.5, θ = 1 − 0.1 (2.5 + 1.25) = 0.625;  g = 2.3125, m = 3.5625, θ = 0.625 − 0.1 · 4.09375
    CHECK(std::abs(two_steps({0.1, 0.5, 0.5, true}) - 0.215625) < 1e-15);
    // No momentum: 1 − 0.25 = 0.75, 0.75 − 0.2375
    CHECK(std::abs(two_steps({0.1, 0, 0.5}) - 0.5125) < 1e-15);
    // Only some parameters decay.
    std::string seen;
    const auto vectors = [&](const std::string& name, std::size_t rank) {
        seen += name + std::to_string(rank) + " ";
        return rank < 2;
    };
    CHECK(std::abs(two_steps({0.1, 0.5, 0.5, false, vectors}) - 0.5) < 1e-15);
    CHECK(seen == "E2 E2 ");
}

TEST_CASE("rows of a table that the batch does not touch stay as they are, and so do their moments")
{
    const auto untouched = [](auto optimiser) {
        table<array<double, 2>> module{numbers(3, 5, 4)};
        const auto before = module.E;
        ad::tape<double> on;
        const auto lifted = ad::lift(on, module);
        word_ids words(1, 2);
        words(0, 0) = 3, words(0, 1) = 1;
        const auto y = ops::lookup(lifted.E, words);
        on.backward(ops::inner(y, filled<double, 3>({1, 2, 4}, 1.0)));
        optimiser.step(module, lifted, on);
        for (std::size_t row = 0; row < 5; ++row) {
            for (std::size_t i = 0; i < 4; ++i) CHECK((module.E(row, i) == before(row, i)) == (row != 1 && row != 3));
        }
        return optimiser.state();
    };
    const auto of_sgd = untouched(train::sgd<double>({0.1}));
    CHECK(of_sgd[0].first.empty());
    CHECK(of_sgd[0].second.empty());
    const auto of_momentum = untouched(train::sgd_with_momentum<double>({.weight_decay = 0.1}));
    for (std::size_t i = 0; i < 20; ++i) CHECK((of_momentum[0].first[i] == 0) == (i / 4 != 1 && i / 4 != 3));
    CHECK(of_momentum[0].second.empty());
    const auto of_adadelta = untouched(train::adadelta<double>());
    for (std::size_t i = 0; i < 20; ++i) CHECK((of_adadelta[0].first[i] == 0) == (i / 4 != 1 && i / 4 != 3));
}

TEST_CASE("a gradient that is not finite changes nothing; a state of another model is refused")
{
    table<array<double, 2>> module{numbers(4, 2, 2)};
    const auto before = module.E;
    train::adadelta<double> optimiser;
    ad::tape<double> on;
    auto lifted = ad::lift(on, module);
    on.backward(ops::inner(lifted.E, filled<double, 2>({2, 2}, INFINITY)));
    CHECK(!std::isfinite(optimiser.step(module, lifted, on)));
    CHECK(module.E == before);
    CHECK(optimiser.steps() == 0);

    on.clear();
    table<array<double, 2>> other{numbers(5, 3, 3)};
    const auto of_other = ad::lift(on, other);
    on.backward(ops::inner(of_other.E, numbers(6, 3, 3)));
    CHECK_THROWS_WITH_AS(optimiser.step(other, of_other, on),
                         "adadelta: parameter E with 9 numbers does not fit the optimiser's state, which has E with 4 "
                         "there; one optimiser serves one model",
                         error);
}

TEST_CASE("learning rates")
{
    const train::inverse_square_root rate{5e-3, 2000, 1e-7};
    CHECK(rate(1) == doctest::Approx(1e-7 + (5e-3 - 1e-7) / 2000).epsilon(1e-12));
    CHECK(rate(2000) == doctest::Approx(5e-3).epsilon(1e-12));
    CHECK(rate(8000) == doctest::Approx(2.5e-3).epsilon(1e-12));
    // Vaswani et al.'s own form: d^-1/2 · min(t^-1/2, t · warm_up^-3/2).
    const train::inverse_square_root theirs{1 / std::sqrt(512.0 * 4000), 4000};
    for (const std::size_t t : {std::size_t{1}, std::size_t{100}, std::size_t{4000}, std::size_t{9000}}) {
        const auto step = static_cast<double>(t);
        const double must = std::min(1 / std::sqrt(step), step * std::pow(4000.0, -1.5)) / std::sqrt(512.0);
        CHECK(theirs(t) == doctest::Approx(must).epsilon(1e-12));
    }
    CHECK(train::inverse_square_root{1, 0}(4) == support::approx(0.5));
    const train::halving half{1, 5};
    CHECK(half(1) == 1);
    CHECK(half(5) == 1);
    CHECK(half(6) == 0.5);
    CHECK(half(8) == 0.125);
}

namespace {

/// A step before backward, and a second one after it; then a recording of its own for each step.
template <class Optimiser>
void check_recordings(Optimiser optimiser)
{
    table<array<double, 2>> module{numbers(1, 3, 7)};
    const auto c = numbers(2, 3, 7), before = module.E;
    ad::tape<double> on;
    const auto refused = [&](const auto& lifted) {
        return support::message_of<error>([&] { optimiser.step(module, lifted, on, 2.0); });
    };
    const std::string rule = optimiser.settings.name;
    {
        const auto lifted = ad::lift(on, module);
        const auto loss = ops::inner(lifted.E, c);
        CHECK(refused(lifted) ==
              rule + ": there are no gradients on this tape yet; call tape.backward(loss) first, after all that the "
                     "loss is computed from was recorded and before tape.clear()");
        CHECK(optimiser.steps() == 0);
        CHECK(module.E == before);
        on.backward(loss);
        optimiser.step(module, lifted, on);
        const auto once = module.E;
        CHECK(once != before);
        CHECK(refused(lifted) ==
              rule + ": a second step with the gradients of one recording; call tape.clear(), lift the model again and "
                     "call tape.backward(loss) before each step");
        CHECK(optimiser.steps() == 1);
        CHECK(module.E == once);

        // Another optimiser may read the same gradients, for another part of the model.
        Optimiser another(optimiser.settings);
        another.step(module, lifted, on);
        CHECK(module.E != once);
    }
    on.clear();
    const auto lifted = ad::lift(on, module);
    CHECK(support::contains(refused(lifted), "there are no gradients"));  // those were of the recording before
    std::fill_n(on.adjoint(lifted.E), lifted.E.size(), 1.0);              // gradients of one's own
    optimiser.step(module, lifted, on);
    CHECK(optimiser.steps() == 2);
}

}  // namespace

TEST_CASE("every optimiser takes one step after each backward")
{
    check_recordings(train::sgd<double>({0.3}));
    check_recordings(train::adadelta<double>({0.9, 1e-4, 0.7}));
    check_recordings(train::adam<double>({.rate = 0.1}));
    check_recordings(train::adamw<double>({.rate = 0.1}));
}

TEST_CASE("a gradient whose norm is not finite counts for no step, and a parameter without a use has the gradient 0")
{
    table<array<double, 2>> module{numbers(1, 3, 7)};
    const auto before = module.E;
    ad::tape<double> on;
    train::sgd<double> optimiser({0.3});
    const auto lifted = ad::lift(on, module);
    const auto x = on.parameter(before);
    on.backward(ops::inner(x, x));  // not of the model
    on.adjoint(lifted.E)[0] = INFINITY;
    CHECK_FALSE(std::isfinite(optimiser.step(module, lifted, on)));
    on.adjoint(lifted.E)[0] = 0;
    CHECK(optimiser.step(module, lifted, on) == 0);
    CHECK(module.E == before);
    CHECK(optimiser.steps() == 1);
}

TEST_CASE("norm, clipping and the gradients themselves: none before backward")
{
    const table<array<double, 2>> module{numbers(1, 3, 7)};
    ad::tape<double> on;
    const auto lifted = ad::lift(on, module);
    const auto loss = ops::inner(lifted.E, numbers(2, 3, 7));
    const auto says = doctest::Contains("there are no gradients on this tape yet");
    CHECK_THROWS_WITH_AS(train::gradient_norm(lifted, on), says, error);
    CHECK_THROWS_WITH_AS(train::clip_gradient(lifted, on, 1.0), says, error);
    CHECK_THROWS_WITH_AS(on.gradient(lifted.E), says, error);
    CHECK_THROWS_WITH_AS(ad::scale_gradient(lifted.E, 2.0), says, error);
    on.backward(loss);
    CHECK(train::gradient_norm(lifted, on) > 0);
}
