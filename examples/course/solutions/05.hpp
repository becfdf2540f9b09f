// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <heed/ops/operation.hpp>

/// Σ_k ∂α_k α_k (1 if k = j, else 0) - Σ_k ∂α_k α_k α_j = α_j (∂α_j - Σ_k α_k ∂α_k). The sum is the same for every j,
/// so compute it once.
inline std::vector<double> softmax_backward(const std::vector<double>& weights, const std::vector<double>& d_weights)
{
    double mean = 0;
    for (std::size_t k = 0; k < weights.size(); ++k) mean += weights[k] * d_weights[k];
    std::vector<double> d_scores;
    for (std::size_t j = 0; j < weights.size(); ++j) d_scores.push_back(weights[j] * (d_weights[j] - mean));
    return d_scores;
}

namespace mine {

/// The slope of log(1 + eˣ) is eˣ / (1 + eˣ) = 1 / (1 + e⁻ˣ): the sigmoid.
struct softplus_op : heed::ops::operation<softplus_op> {
    static auto shape(const auto& x) { return x.shape; }

    static void forward(const auto& x, const auto& y)
    {
        using std::exp, std::log1p;
        for (std::size_t i = 0; i < y.size(); ++i) y.data[i] = log1p(exp(x.data[i]));
    }

    static void backward(const auto& x, const auto&, const auto& d_y, const auto& d_x)
    {
        using std::exp;
        for (std::size_t i = 0; i < d_y.size(); ++i) d_x.data[i] += d_y.data[i] / (1 + exp(-x.data[i]));
    }
};
inline constexpr softplus_op softplus{};

}  // namespace mine
