// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/products.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <utility>
#include <vector>

using namespace heed;
using support::random;

// The uses of a weight add to its gradient together.

TEST_CASE("a matrix that is computed, not given, also gets its gradient")
{
    CHECK_GRADIENT([](const auto& x, const auto& W) { return ops::linear(x, ops::tanh(W)); }, random({3, 4}, 1),
                   random({4, 2}, 2));
}

TEST_CASE("the gradient of a weight used at many steps is the sum of the gradients of its uses")
{
    // In one product at the end, for any layout of the uses: several rows or one, contiguous or not.
    const auto W = random({3, 4}, 1), V = random({4, 3}, 2);
    const auto b = random({4}, 3);
    const auto start = random({2, 3}, 4), single = random({1, 3}, 5);
    constexpr std::size_t steps = 7;

    struct gradients {
        array<double, 2> W, V;
        array<double, 1> b;
    };
    // Recurrent: the input of a step is the output of the previous step. With one shared parameter, or one per step.
    const auto run = [&](bool shared) {
        std::vector<array<double, 2>> Ws(steps, W), Vs(steps, V);
        std::vector<array<double, 1>> bs(steps, b);
        ad::tape<double> on;
        std::vector<ad::var<double, 2>> w, v;
        std::vector<ad::var<double, 1>> bias;
        for (std::size_t s = 0; s < steps; ++s) {
            w.push_back(shared && s > 0 ? w[0] : on.parameter(Ws[s]));
            v.push_back(shared && s > 0 ? v[0] : on.parameter(Vs[s]));
            bias.push_back(shared && s > 0 ? bias[0] : on.parameter(bs[s]));
        }
        auto x = on.constant(start), one = on.constant(single);
        for (std::size_t s = 0; s < steps; ++s) {
            x = ops::linear(ops::tanh(ops::linear(x, w[s], bias[s])), v[s]);
            if (s % 2 == 0) one = ops::linear(ops::sigmoid(ops::linear(one, w[s])), v[s]);
        }
        const auto weights = ops::square(w[2]);  // and a use that is not a product
        on.backward(
            ops::add(ops::add(ops::dot(x, support::uneven(x.shape())), ops::dot(one, support::uneven(one.shape()))),
                     ops::dot(weights, support::uneven(weights.shape()))));
        gradients sum{array<double, 2>({3, 4}, 0.0), array<double, 2>({4, 3}, 0.0), array<double, 1>({4}, 0.0)};
        const auto add = [&](auto& to, const auto& variable) {
            const auto g = on.gradient(variable);
            for (std::size_t i = 0; i < g.size(); ++i) to.data()[i] += g.data[i];
        };
        for (std::size_t s = 0; s < (shared ? 1 : steps); ++s) add(sum.W, w[s]), add(sum.V, v[s]), add(sum.b, bias[s]);
        return sum;
    };
    const gradients one = run(true), many = run(false);
    CHECK(support::distance(one.W, many.W) < 1e-14);
    CHECK(support::distance(one.V, many.V) < 1e-14);
    CHECK(support::distance(one.b, many.b) < 1e-14);
    CHECK(one.W(0, 0) != 0);
}

TEST_CASE("uses of a weight that are adjacent in memory")
{
    // Blocks of one tensor: xᵀ ∂y gathers nothing, forward or backward.
    const auto x = random({5, 2, 3}, 1);
    const auto W = random({3, 4}, 2);
    const auto run = [&](bool backwards) {
        ad::tape<double> on;
        const auto whole = on.parameter(x);
        const auto weight = on.parameter(W);
        std::vector<ad::var<double, 2>> parts(5);
        for (std::size_t i = 0; i < 5; ++i) {
            const std::size_t s = backwards ? 4 - i : i;
            parts[s] = ops::linear(ops::block(whole, s), weight);
        }
        const auto all = ops::stack(parts);
        on.backward(ops::dot(all, support::uneven(all.shape())));
        return std::pair{copy_of(on.gradient(weight)), copy_of(on.gradient(whole))};
    };
    ad::tape<double> on;
    const auto whole = on.parameter(x);
    const auto weight = on.parameter(W);
    const auto all = ops::linear(whole, weight);
    on.backward(ops::dot(all, support::uneven(all.shape())));
    for (const bool backwards : {false, true}) {
        const auto [of_weight, of_whole] = run(backwards);
        CHECK(support::distance(of_weight, on.gradient(weight)) < 1e-15);
        CHECK(support::distance(of_whole, on.gradient(whole)) < 1e-15);
    }
}
