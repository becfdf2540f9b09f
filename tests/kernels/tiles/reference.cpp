// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/reference.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include <support/kernels.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
namespace reference = tiles::reference;
using test::head_of_numbers, test::waves;

namespace {

/// A bounded score, as a score_mod.
struct capped {
    double operator()(double e, std::size_t s, std::size_t j) const
    {
        return std::tanh(e) + 0.1 * static_cast<double>(s + j);
    }
    double slope(double e, std::size_t, std::size_t) const { return 1 - std::tanh(e) * std::tanh(e); }
};

constexpr auto up_to_three_more = [](std::size_t s, std::size_t j) { return j <= s + 3; };

/// Gradients compared with finite differences of forward(head, contexts) + Σ contexts · g.
void check_gradients(const auto& forward, const auto& backward)
{
    head_of_numbers<double> x(4, 7, 3, 2);
    const auto g = waves<double>(x.S * x.D, 5);
    std::vector<double> d_q(x.queries.size(), 0.5), d_k(x.keys.size(), 0.5), d_v(x.values.size(), 0.5);
    const auto loss = [&] {
        std::vector<double> contexts(x.S * x.D);
        const double more = forward(x.head(), tiles::rows<double>{contexts.data(), x.D});
        return more + test::dot(contexts, g);
    };
    backward(x.head(), tiles::rows<const double>{g.data(), x.D},
             tiles::head_gradients<double>{{d_q.data(), x.A}, {d_k.data(), x.A}, {d_v.data(), x.D}});
    test::check_gradient("queries", x.queries, loss, d_q, 0.5);
    test::check_gradient("keys", x.keys, loss, d_k, 0.5);
    test::check_gradient("values", x.values, loss, d_v, 0.5);
}
void check_rule(const auto& rule)
{
    check_gradients(
        [&](const auto& of, const auto& contexts) {
            reference::forward(of, capped{}, up_to_three_more, rule, contexts);
            return 0.0;
        },
        [&](const auto& of, const auto& d_contexts, const auto& to) {
            reference::backward(of, capped{}, up_to_three_more, rule, d_contexts, to);
        });
}

}  // namespace

TEST_CASE("weights of scores, computed manually")
{
    const auto weights = [](const auto& rule, std::vector<double> e) {
        rule.weights(e);
        return e;
    };
    const double ln2 = std::log(2.0), near = 1e-15;
    CHECK(std::fabs(weights(reference::softmax{}, {ln2, 0})[0] - 2.0 / 3) < near);
    CHECK(std::fabs(weights(reference::sigmoid{ln2}, {0})[0] - 2.0 / 3) < near);
    CHECK(std::fabs(weights(reference::sparse_weights<1>{}, {0.5, 0, -1})[0] - 0.75) < near);
    CHECK(weights(reference::sparse_weights<1>{}, {0.5, 0, -1})[2] == 0);
    CHECK(std::fabs(weights(reference::sparse_weights<2>{}, {1, 1})[0] - 0.5) < near);
    CHECK(std::fabs(weights(reference::stick_breaking{}, {0, ln2})[0] - 1.0 / 6) < near);
    CHECK(std::fabs(weights(reference::stick_breaking{}, {0, ln2})[1] - 2.0 / 3) < near);
}

TEST_CASE("gradients of the definitions match finite differences")
{
    check_rule(reference::softmax{});
    check_rule(reference::sigmoid{-1});
    check_rule(reference::sparse_weights<1>{});
    check_rule(reference::sparse_weights<2>{});
    check_rule(reference::stick_breaking{});
    const auto history = waves<double>(7, 8), weights = waves<double>(7, 9);
    const reference::past past{0.8, 0.1};
    check_gradients(
        [&](const auto& of, const auto& contexts) {
            auto L = history;
            reference::forward_in_order(of, past, up_to_three_more, contexts, L);
            return test::dot(L, weights);
        },
        [&](const auto& of, const auto& d_contexts, const auto& to) {
            auto d_history = weights;
            reference::backward_in_order(of, past, up_to_three_more, d_contexts, history, d_history, to);
        });
}

TEST_CASE("sums over the past, computed manually")
{
    const double x[] = {1, 2}, k[] = {1, 10}, v[] = {1, 3};
    double y[2] = {};
    const auto half = [](std::size_t j, std::size_t p) { return std::pow(0.5, static_cast<double>(p - j)); };
    reference::sums_over_past<double>(2, 2, 0, 1, 1, half, {x, 1}, {k, 1}, {v, 1}, {y, 1});
    CHECK(y[0] == 1);
    CHECK(y[1] == 1 + 60);
}
