// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <heed/ops/elementwise.hpp>
#include <heed/ops/softmax.hpp>
#include <heed/policy/concepts.hpp>

/// log(e^a + e^b) with m = max(a, b): then no exponent is above 0. The logarithm of the past grows step by step, like
/// heed's state. Before the first step it would be log 0, minus infinity; the first step does not use it.
inline std::vector<double> temporal_weights(const std::vector<std::vector<double>>& scores)
{
    const std::size_t steps = scores.size(), words = scores[0].size();
    std::vector<double> u = scores.back();
    for (std::size_t j = 0; j < words; ++j) {
        if (steps == 1) break;
        double past = scores[0][j];
        for (std::size_t t = 1; t + 1 < steps; ++t) {
            const double e = scores[t][j], m = std::max(past, e);
            past = m + std::log(std::exp(past - m) + std::exp(e - m));
        }
        u[j] -= past;
    }
    const double greatest = *std::max_element(u.begin(), u.end());
    double sum = 0;
    for (double& x : u) sum += x = std::exp(x - greatest);
    for (double& x : u) x /= sum;
    return u;
}

namespace mine {

/// Three lines: the state is 0 before the first step; the softmax subtracts λ times the state before positions are
/// hidden; the weights become the next state. Weights from two steps ago are forgotten, so attention may return to that
/// word.
struct not_again {
    double strength = 3;  // λ

    template <class Weights>
    struct state {
        Weights last;  // α_{t-1}, the shape of the scores

        /// Applies f to every tensor of the state: beam search selects sentences with it.
        auto map(auto&& f, const auto&... others) const { return not_again::make(f(last, others.last...)); }
    };

    /// The state before the first step. blank(x) is a tensor of the scores' shape, filled with x.
    auto start(auto&& blank) const { return make(blank(0.0)); }

    auto operator()(const heed::tensor auto& scores, const auto& past, const auto& at) const
    {
        using namespace heed;
        return ops::softmax(at.visible(ops::subtract(scores, ops::scale(past.last, strength))), at.real);
    }

    /// The state after this step; `weights` is the result of operator().
    auto advance(const heed::tensor auto&, const heed::tensor auto& weights, const auto&, const auto&) const
    {
        return make(weights);
    }

    static auto parameters(auto& self, auto&&) { return mine::not_again{self.strength}; }

    template <class Weights>
    static state<Weights> make(Weights last)
    {
        return {std::move(last)};
    }
};

}  // namespace mine
