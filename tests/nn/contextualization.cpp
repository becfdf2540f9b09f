// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/contextualization.hpp>

#include <heed/ad/ad.hpp>
#include <heed/nn/init.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <support/gradients.hpp>
#include <support/scalar_memory.hpp>

using namespace heed;
using support::random;
namespace scalar = support::scalar;

namespace {

/// For source words of 3 numbers, target words of 2, and a context of 4.
auto make(random_source& source)
{
    auto W = nn::glorot<double>(source, 3, 4);
    nn::context_gate of_source{nn::glorot<double>(source, 4, 3), nn::zeros<double>(3)};
    nn::context_gate of_target{nn::glorot<double>(source, 4, 2), nn::zeros<double>(2)};
    return nn::contextualization{std::move(W), nn::zeros<double>(4), std::move(of_source), std::move(of_target)};
}

}  // namespace

TEST_CASE("the context of a sentence is the mean over its true length")
{
    random_source source{1};
    const auto contextualize = make(source);
    CHECK(parameter_count(contextualize) == 3 * 4 + 4 + (4 * 3 + 3) + (4 * 2 + 2));
    auto x = random({3, 5, 3}, 1);
    for (std::size_t j = 2; j < 5; ++j) {  // the padding of row 1
        for (std::size_t d = 0; d < 3; ++d) x(1, j, d) = std::numeric_limits<double>::quiet_NaN();
    }
    const lengths real{5, 2, 0};
    const auto c = contextualize.context(x, real);
    const auto gated = contextualize.source(x, c, real);
    for (std::size_t b = 0; b < 3; ++b) {
        for (std::size_t i = 0; i < 4; ++i) {
            double mean = 0;
            for (std::size_t j = 0; j < real[b]; ++j) {
                double sum = contextualize.b(i);
                for (std::size_t d = 0; d < 3; ++d) sum += x(b, j, d) * contextualize.W(d, i);
                mean += std::tanh(sum) / static_cast<double>(real[b]);
            }
            CHECK(c(b, i) == doctest::Approx(mean).epsilon(1e-14));
        }
        for (std::size_t d = 0; d < 3; ++d) {
            double gate = contextualize.source_gate.m(d);
            for (std::size_t i = 0; i < 4; ++i) gate += c(b, i) * contextualize.source_gate.M(i, d);
            for (std::size_t j = 0; j < 5; ++j) {
                const double must = j < real[b] ? x(b, j, d) * scalar::sigmoid(gate) : 0;
                CHECK(gated(b, j, d) == doctest::Approx(must).epsilon(1e-14));
            }
        }
    }
    // The words of one step and of all steps.
    const auto y = random({3, 4, 2}, 2);
    CHECK(support::distance(ops::step_of(contextualize.target(y, c), std::size_t{2}),
                            contextualize.target(ops::step_of(y, std::size_t{2}), c)) < 1e-15);
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                contextualize.context(x, lengths{5, 6, 0});
                            }),
                            "contextualization: the length of row 1 is 6"));
    CHECK(support::all_finite(contextualize.context(random({2, 0, 3}, 1), lengths{0, 0})));
}

TEST_CASE("the context of a single word is its own; values of 1e4 stay finite")
{
    random_source source{3};
    const auto contextualize = make(source);
    const auto x = random({2, 1, 3}, 1);
    const auto c = contextualize.context(x, lengths{1, 0});
    for (std::size_t i = 0; i < 4; ++i) {
        double sum = contextualize.b(i);
        for (std::size_t d = 0; d < 3; ++d) sum += x(0, 0, d) * contextualize.W(d, i);
        CHECK(c(0, i) == doctest::Approx(std::tanh(sum)).epsilon(1e-14));
        CHECK(c(1, i) == 0);
    }
    for (const double scale : {1e4, -1e4}) {
        const auto far = random({2, 3, 3}, 2, scale);
        const lengths real{3, 2};
        ad::tape<double> on;
        const auto lifted = ad::lift(on, contextualize);
        const auto words = on.parameter(far);
        const auto context = lifted.context(words, real);
        const auto gated = lifted.source(words, context, real);
        on.backward(ops::dot(gated, support::uneven(shape_of(gated))));
        for (std::size_t i = 0; i < 8; ++i) CHECK(std::abs(context.data()[i]) <= 1);
        for (std::size_t i = 0; i < far.size(); ++i) CHECK(std::abs(gated.data()[i]) <= std::abs(far.data()[i]));
        for_each_parameter(lifted,
                           [&](const std::string&, const auto& p) { CHECK(support::all_finite(on.gradient(p))); });
        CHECK(support::all_finite(on.gradient(words)));
    }
}

TEST_CASE("the gradient of contextualization is correct, even with NaN in the padding")
{
    random_source source{2};
    auto contextualize = make(source);
    const auto out = [&](const auto& module, const auto& x, const auto& y) {
        const lengths real{4, 2, 0};
        const auto c = module.context(x, real);
        const auto gated = module.source(x, c, real);
        const auto targets = module.target(y, c);
        return ops::add(ops::dot(gated, support::uneven(shape_of(gated))),
                        ops::dot(targets, support::uneven(shape_of(targets))));
    };
    auto x = random({3, 4, 3}, 1);
    const auto y = random({3, 2, 2}, 2);
    const auto by_module = ad::grad_check(contextualize, [&](auto&, const auto& lifted) { return out(lifted, x, y); });
    CHECK_MESSAGE(bool(by_module), by_module.text());
    CHECK_GRADIENT([&](const auto& a, const auto& b) { return out(contextualize, a, b); }, x, y);

    const auto gradients = [&] {
        ad::tape<double> on;
        const auto lifted = ad::lift(on, contextualize);
        on.backward(out(lifted, on.parameter(x), y));
        std::vector<array<double, 2>> all;
        all.push_back(copy_of(on.gradient(lifted.W)));
        all.push_back(copy_of(on.gradient(lifted.source_gate.M)));
        return all;
    };
    const auto clean = gradients();
    for (std::size_t d = 0; d < 3; ++d) x(1, 3, d) = std::numeric_limits<double>::quiet_NaN();
    const auto with_rubbish = gradients();
    for (std::size_t i = 0; i < clean.size(); ++i) CHECK(support::same_bits(clean[i], with_rubbish[i]));
}
