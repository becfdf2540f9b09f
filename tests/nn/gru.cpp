// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/gru.hpp>

#include <support/tensors.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t batch = 2, inputs = 3, hidden = 4;

double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }

/// One step, in scalars, of a unit whose reset gate acts before the product. `mix` computes the new state from z, the
/// old state and the candidate.
array<double, 2> one_step(const auto& unit, const array<double, 2>& x, const array<double, 2>& h,
                          const std::function<double(double, double, double)>& mix)
{
    array<double, 2> next(h.shape());
    for (std::size_t b = 0; b < batch; ++b) {
        const auto from_input = [&](std::size_t column) {
            double sum = unit.b(column);
            for (std::size_t k = 0; k < inputs; ++k) sum += x(b, k) * unit.W(k, column);
            return sum;
        };
        const auto gate = [&](std::size_t column) {
            double sum = from_input(column);
            for (std::size_t k = 0; k < hidden; ++k) sum += h(b, k) * unit.U(k, column);
            return sigmoid(sum);
        };
        for (std::size_t i = 0; i < hidden; ++i) {
            double sum = from_input(2 * hidden + i);
            for (std::size_t k = 0; k < hidden; ++k) sum += gate(hidden + k) * h(b, k) * unit.U_h(k, i);
            next(b, i) = mix(gate(i), h(b, i), std::tanh(sum));
        }
    }
    return next;
}

}  // namespace

TEST_CASE("the update gate is the candidate's share, and negated it is that of the state")
{
    const array<double, 2> x = random<double, 2>({batch, inputs}, 1), h = random<double, 2>({batch, hidden}, 2);
    nn::gru unit{random<double, 2>({inputs, 3 * hidden}, 3), random<double, 1>({3 * hidden}, 4),
                 random<double, 2>({hidden, 2 * hidden}, 5), random<double, 2>({hidden, hidden}, 6)};
    const auto renews = [](double z, double old, double fresh) { return (1 - z) * old + z * fresh; };
    const auto keeps = [](double z, double old, double fresh) { return z * old + (1 - z) * fresh; };
    const auto difference = [&](const array<double, 2>& expected) {
        const array<double, 2> found = unit.step(unit.project(x), h);
        double largest = 0;
        for (std::size_t i = 0; i < found.size(); ++i)
            largest = std::max(largest, std::abs(found.data()[i] - expected.data()[i]));
        return largest;
    };
    CHECK(difference(one_step(unit, x, h, renews)) < 1e-14);
    CHECK(difference(one_step(unit, x, h, keeps)) > 0.1);

    // Weights of a unit whose z keeps the state, as in Cho et al. 2014: with z's columns negated they are heed's.
    const array<double, 2> theirs = one_step(unit, x, h, keeps);
    for (std::size_t i = 0; i < hidden; ++i) {
        for (std::size_t k = 0; k < inputs; ++k) unit.W(k, i) *= -1;
        for (std::size_t k = 0; k < hidden; ++k) unit.U(k, i) *= -1;
        unit.b(i) *= -1;
    }
    CHECK(difference(theirs) < 1e-14);
}

TEST_CASE("a zero start has no parameters, a trained one has the state's size")
{
    CHECK(parameter_count(nn::zero_start{5}) == 0);
    CHECK(parameter_count(nn::trained_start{nn::zeros<float>(5)}) == 5);
    const auto beside = filled<double, 1>({1}, 0.0);
    const auto zero = nn::zero_start{5}.state(2, beside);
    CHECK(shape_of(zero) == shape_of_rank<2>{2, 5});
    for (const double x : zero) CHECK(x == 0);
}
