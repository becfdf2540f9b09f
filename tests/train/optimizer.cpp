// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <heed/ad/ad.hpp>
#include <heed/train/adadelta.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/optimizer.hpp>
#include <heed/train/sgd.hpp>
#include <support/one_table.hpp>
#include <support/tensors.hpp>

using namespace heed;

template <class Matrix>
using table = support::one_table<Matrix>;
constexpr auto numbers = support::gaussian_numbers;

namespace {

/// A step before backward, and a second one after it; then a separate recording for each step.
template <class Optimizer>
void check_recordings(Optimizer optimizer)
{
    table<array<double, 2>> module{numbers(1, 3, 7)};
    const auto c = numbers(2, 3, 7), before = module.E;
    ad::tape<double> on;
    const auto refused = [&](const auto& lifted) {
        return support::message_of<error>([&] { optimizer.step(module, lifted, on, 2.0); });
    };
    const std::string rule = optimizer.settings.name;
    {
        const auto lifted = ad::lift(on, module);
        const auto loss = ops::dot(lifted.E, c);
        CHECK(refused(lifted) ==
              rule + ": there are no gradients on this tape yet; call tape.backward(loss) first, after recording "
                     "the loss and before tape.clear()");
        CHECK(optimizer.steps() == 0);
        CHECK(module.E == before);
        on.backward(loss);
        optimizer.step(module, lifted, on);
        const auto once = module.E;
        CHECK(once != before);
        CHECK(refused(lifted) ==
              rule + ": a second step with the gradients of one recording; call tape.clear(), lift the model again and "
                     "call tape.backward(loss) before each step");
        CHECK(optimizer.steps() == 1);
        CHECK(module.E == once);

        // Another optimizer may read the same gradients, for another part of the model.
        Optimizer another(optimizer.settings);
        another.step(module, lifted, on);
        CHECK(module.E != once);
    }
    on.clear();
    const auto lifted = ad::lift(on, module);
    CHECK(support::contains(refused(lifted), "there are no gradients"));  // they belonged to the previous recording
    std::fill_n(on.adjoint(lifted.E), lifted.E.size(), 1.0);              // custom gradients
    optimizer.step(module, lifted, on);
    CHECK(optimizer.steps() == 2);
}

}  // namespace

TEST_CASE("every optimizer takes one step after each backward")
{
    check_recordings(train::sgd<double>({0.3}));
    check_recordings(train::adadelta<double>({0.9, 1e-4, 0.7}));
    check_recordings(train::adam<double>({.rate = 0.1}));
    check_recordings(train::adamw<double>({.rate = 0.1}));
}

TEST_CASE("a gradient with a non-finite norm is not a step, and an unused parameter has the gradient 0")
{
    table<array<double, 2>> module{numbers(1, 3, 7)};
    const auto before = module.E;
    ad::tape<double> on;
    train::sgd<double> optimizer({0.3});
    const auto lifted = ad::lift(on, module);
    const auto x = on.parameter(before);
    on.backward(ops::dot(x, x));  // does not depend on the model
    on.adjoint(lifted.E)[0] = INFINITY;
    CHECK_FALSE(std::isfinite(optimizer.step(module, lifted, on)));
    on.adjoint(lifted.E)[0] = 0;
    CHECK(optimizer.step(module, lifted, on) == 0);
    CHECK(module.E == before);
    CHECK(optimizer.steps() == 1);
}

TEST_CASE("a gradient that is not finite changes nothing, and a state of another model is rejected")
{
    table<array<double, 2>> module{numbers(4, 2, 2)};
    const auto before = module.E;
    train::adadelta<double> optimizer;
    ad::tape<double> on;
    auto lifted = ad::lift(on, module);
    on.backward(ops::dot(lifted.E, filled<double, 2>({2, 2}, INFINITY)));
    CHECK(!std::isfinite(optimizer.step(module, lifted, on)));
    CHECK(module.E == before);
    CHECK(optimizer.steps() == 0);

    on.clear();
    table<array<double, 2>> other{numbers(5, 3, 3)};
    const auto of_other = ad::lift(on, other);
    on.backward(ops::dot(of_other.E, numbers(6, 3, 3)));
    CHECK_THROWS_WITH_AS(optimizer.step(other, of_other, on),
                         "adadelta: parameter E with 9 numbers does not fit the optimizer's state, which has E with 4 "
                         "there; use one optimizer per model",
                         error);
}

TEST_CASE("a gradient that is not finite changes nothing and is reported by its norm")
{
    table<array<double, 2>> module{numbers(8, 2, 2)};
    const auto before = module.E;
    train::adam<double> optimizer;
    ad::tape<double> on;
    const auto lifted = ad::lift(on, module);
    on.backward(ops::dot(lifted.E, filled<double, 2>({2, 2}, std::nan(""))));
    CHECK(!std::isfinite(optimizer.step(module, lifted, on, 1.0)));
    CHECK(optimizer.steps() == 0);
    for (std::size_t i = 0; i < 4; ++i) CHECK(module.E.data()[i] == before.data()[i]);
}

TEST_CASE("one optimizer serves one model")
{
    table<array<double, 2>> one{numbers(9, 2, 2)}, other{numbers(9, 3, 2)};
    train::adam<double> optimizer;
    ad::tape<double> on;
    const auto step = [&](auto& module) {
        on.clear();
        const auto lifted = ad::lift(on, module);
        on.backward(ops::dot(lifted.E, filled<double, 2>(shape_of(module.E), 1.0)));
        optimizer.step(module, lifted, on);
    };
    step(one);
    CHECK_THROWS_WITH_AS(
        step(other),
        "adam: parameter E with 6 numbers does not fit the optimizer's state, which has E with 4 there; use one "
        "optimizer per model",
        error);
}
