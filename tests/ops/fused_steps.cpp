// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/fused_steps.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>

using namespace heed;
using support::random;

namespace {

const lengths real{4, 0, 2};
const auto query = random({3, 5}, 1);
const auto keys = random({3, 4, 5}, 2), values = random({3, 4, 2}, 3);

/// softmax of the scores, and the weighted sum of the values, in scalar loops.
void check(const auto& step, auto&& score)
{
    for (std::size_t b = 0; b < 3; ++b) {
        double whole = 0;
        for (std::size_t t = 0; t < real[b]; ++t) whole += std::exp(score(b, t));
        for (std::size_t t = 0; t < 4; ++t)
            CHECK(step.weights(b, t) == support::approx(t < real[b] ? std::exp(score(b, t)) / whole : 0.0));
        for (std::size_t d = 0; d < 2; ++d) {
            double sum = 0;
            for (std::size_t t = 0; t < real[b]; ++t) sum += std::exp(score(b, t)) / whole * values(b, t, d);
            CHECK(step.context(b, d) == support::approx(sum));
        }
    }
}

/// Both results in one tensor.
constexpr auto both = [](const auto& step) { return ops::concat(step.context, step.weights); };

}  // namespace

TEST_CASE("a step of additive attention, with and without a history")
{
    const auto v = random({5}, 4);
    const auto score = [&](std::size_t b, std::size_t t) {
        double e = 0;
        for (std::size_t a = 0; a < 5; ++a) e += v(a) * std::tanh(query(b, a) + keys(b, t, a));
        return e;
    };
    check(ops::additive_step(query, keys, v, values, real), score);
    CHECK_GRADIENT([](const auto& q, const auto& k, const auto& w,
                      const auto& h) { return both(ops::additive_step(q, k, w, h, real)); },
                   query, keys, v, values);
    const auto history = random({3, 4}, 5);
    const auto temporal = ops::additive_temporal_step_op{}(query, keys, v, values, history, real);
    check(temporal, [&](std::size_t b, std::size_t t) { return score(b, t) - history(b, t); });
    for (std::size_t t = 0; t < 4; ++t)
        CHECK(temporal.history(0, t) == support::approx(std::log(std::exp(history(0, t)) + std::exp(score(0, t)))));
}

TEST_CASE("a step by inner products")
{
    check(ops::dot_step(query, keys, values, real), [](std::size_t b, std::size_t t) {
        double e = 0;
        for (std::size_t a = 0; a < 5; ++a) e += query(b, a) * keys(b, t, a);
        return e;
    });
    CHECK_GRADIENT([](const auto& q, const auto& k, const auto& h) { return both(ops::dot_step(q, k, h, real)); },
                   query, keys, values);
    CHECK(support::message_of<shape_error>([] {
              (void)ops::dot_step(random({3, 4}, 1), keys, values, real);
          }) ==
          "attention by inner products: the projected query is [3,4] but must be [3,5] (one row for each row of the "
          "keys [3,4,5])");
}

TEST_CASE("a step per dimension, with or without its weights")
{
    const auto V = random({5, 2}, 4);
    const auto step = ops::per_dimension_step(query, keys, V, values, real, ops::weights_of_step::returned);
    for (std::size_t b = 0; b < 3; ++b) {
        for (std::size_t d = 0; d < 2; ++d) {
            double whole = 0, sum = 0;
            for (std::size_t t = 0; t < real[b]; ++t) {
                double e = 0;
                for (std::size_t a = 0; a < 5; ++a) e += std::tanh(query(b, a) + keys(b, t, a)) * V(a, d);
                whole += std::exp(e);
                sum += std::exp(e) * values(b, t, d);
            }
            CHECK(step.context(b, d) == support::approx(whole == 0 ? 0.0 : sum / whole));
        }
    }
    const auto without = ops::per_dimension_step(query, keys, V, values, real, ops::weights_of_step::left_out);
    CHECK(support::distance(without.context, step.context) < 1e-15);
    CHECK(without.weights.shape() == shape_of_rank<3>{3, 0, 2});
    CHECK_GRADIENT(
        [](const auto& q, const auto& k, const auto& W, const auto& h) {
            return ops::per_dimension_step(q, k, W, h, real, ops::weights_of_step::left_out).context;
        },
        query, keys, V, values);
}
