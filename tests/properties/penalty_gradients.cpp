// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <heed/penalty/coverage.hpp>
#include <heed/penalty/doubly_stochastic.hpp>
#include <heed/penalty/guided_alignment.hpp>
#include <heed/penalty/monotone.hpp>
#include <support/function_of.hpp>

#include <vector>

// Gradients of losses on weights: with respect to the weights, and through attention to every parameter.

using namespace heed;
using support::random;

namespace {

/// The weights of each step as slices of one tensor [S,B,T], to check them together.
auto steps_of(const auto& all)
{
    std::vector<decltype(ops::block(all, 0u))> steps;
    for (std::size_t s = 0; s < shape_of(all)[0]; ++s) steps.push_back(ops::block(all, s));
    return steps;
}

const std::vector<penalty::links> links{{{0, 0}, {4, 0}, {2, 3}}, {{1, 1}, {0, 2}}, {}, {{0, 1}}};
const lengths source{5, 2, 0, 1}, target{4, 3, 2, 4};

auto each_loss(const auto& weights)
{
    return ops::add(ops::add(ops::scale(penalty::doubly_stochastic(weights, source, target), 0.7),
                             ops::scale(penalty::coverage(weights, source, target), 1.3)),
                    ops::add(ops::scale(penalty::monotone(weights, source, target), 0.4),
                             ops::scale(penalty::guided_alignment(weights, links, source, target), 0.9)));
}

/// An attention, annotations and queries, to lift together.
template <class Attention, class Tensor>
struct model {
    Attention attend;
    Tensor annotations;  // [B,T,D]
    Tensor queries;      // [B,S,Q]

    static auto parameters(auto& self, auto&& visit)
    {
        auto attend = visit("attend", self.attend);
        auto annotations = visit("annotations", self.annotations);
        auto queries = visit("queries", self.queries);
        return model<decltype(attend), decltype(annotations)>{attend, annotations, queries};
    }
};
template <class Attention, class Tensor>
model(Attention, Tensor, Tensor) -> model<Attention, Tensor>;

auto weights_of(const auto& m)
{
    const auto memory = m.attend.on(m.annotations, source);
    auto now = m.attend.step(memory, ops::step_of(m.queries, 0u), m.attend.start(memory));
    std::vector<decltype(now.weights)> weights{now.weights};
    for (std::size_t s = 1; s < 4; ++s) {
        now = m.attend.step(memory, ops::step_of(m.queries, s), now.state);
        weights.push_back(now.weights);
    }
    return weights;
}

}  // namespace

TEST_CASE("with respect to the weights")
{
    auto weights = random({4, 4, 5}, 1);
    for (double& x : weights) x = 0.2 + std::abs(x);  // all different, none near the floor
    const auto check = [&](const auto& loss) { support::check_gradient_of<3, 0>(loss, weights); };
    check([](const auto& all) { return penalty::doubly_stochastic(steps_of(all), source, target); });
    check([](const auto& all) { return penalty::coverage(steps_of(all), source, target); });
    check([](const auto& all) { return penalty::monotone(steps_of(all), source, target); });
    check([](const auto& all) { return penalty::guided_alignment(steps_of(all), links, source, target); });
    check([](const auto& all) { return penalty::coverage(steps_of(all), source); });
    // Also below the floor, where the logarithm continues as its tangent.
    check([](const auto& all) { return penalty::guided_alignment(steps_of(all), links, source, 0.7); });
}

TEST_CASE("one position, one step")
{
    const auto check = [](const auto& loss) { support::check_gradient_of<3, 0>(loss, array<double, 3>{{{0.6}}}); };
    check([](const auto& a) { return penalty::doubly_stochastic(steps_of(a), lengths{1}); });
    check([](const auto& a) { return penalty::coverage(steps_of(a), lengths{1}); });
    check([](const auto& a) { return penalty::monotone(steps_of(a), lengths{1}); });
    check([](const auto& a) {
        return penalty::guided_alignment(steps_of(a), std::vector<penalty::links>{{{0, 0}}}, lengths{1});
    });
}

TEST_CASE("no gradient beyond the lengths, none from NaN there, and no difference from plain weights")
{
    auto values = random({4, 4, 5}, 1);
    for (std::size_t s = 0; s < 4; ++s) {
        for (std::size_t b = 0; b < 4; ++b) {
            for (std::size_t i = 0; i < 5; ++i) {
                double& x = values(s, b, i);
                x = s < target[b] && i < source[b] ? 0.1 + std::abs(x) : std::nan("");
            }
        }
    }
    ad::tape<double> on;
    const auto weights = on.parameter(values);
    const auto loss = each_loss(steps_of(weights));
    CHECK(loss.data()[0] == each_loss(steps_of(values)).data()[0]);
    on.backward(loss);
    bool some = false;
    for (std::size_t s = 0; s < 4; ++s) {
        for (std::size_t b = 0; b < 4; ++b) {
            for (std::size_t i = 0; i < 5; ++i) {
                const double slope = on.gradient(weights).data[(s * 4 + b) * 5 + i];
                if (s >= target[b] || i >= source[b]) CHECK(slope == 0);
                some = some || slope != 0;
                CHECK(std::isfinite(slope));
            }
        }
    }
    CHECK(some);
}

TEST_CASE("through attention, to every parameter, the annotations and the queries")
{
    const auto W = random({3, 4}, 1), U = random({2, 4}, 2);
    const auto v = random({4}, 3);
    const auto check = [&](const auto& normalize) {
        model m{attention{score::additive{W, U, v}, normalize, combine::weighted_sum{}}, random({4, 5, 2}, 4),
                random({4, 4, 3}, 5)};
        const auto found = ad::grad_check(m, [](auto&, const auto& lifted) { return each_loss(weights_of(lifted)); });
        CHECK_MESSAGE(bool(found), found.text());
    };
    check(normalize::softmax{});
    check(normalize::temporal{});
}

TEST_CASE("gradient descent on a penalty reduces it as intended")
{
    // Guided alignment alone: a few gradient descent steps on the scores move the weights to the links.
    array<double, 3> scores = random({1, 2, 3}, 7);  // [B,S,T]
    const std::vector<penalty::links> gold{{{2, 0}, {0, 1}}};
    for (int round = 0; round < 200; ++round) {
        ad::tape<double> on;
        const auto e = on.parameter(scores);
        std::vector<ad::var<double, 2>> weights;
        for (std::size_t s = 0; s < 2; ++s) weights.push_back(ops::softmax(ops::step_of(e, s), lengths{3}));
        on.backward(penalty::guided_alignment(weights, gold, lengths{3}));
        for (std::size_t i = 0; i < scores.size(); ++i) scores.data()[i] -= 0.5 * on.gradient(e).data[i];
    }
    CHECK(ops::softmax(ops::step_of(scores, 0u), lengths{3})(0, 2) > 0.95);
    CHECK(ops::softmax(ops::step_of(scores, 1u), lengths{3})(0, 0) > 0.95);
}
