// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/modified.hpp>
#include <heed/score/scaled_dot.hpp>

/// Press, Smith and Lewis 2022, "Train Short, Test Long: Attention with Linear Biases Enables Input Length
/// Extrapolation".
namespace heed::papers::press2022 {

/// The penalty of head h of H: e − 2^(−8 (h+1) / H) · (s − j) for query s and key j.
struct linear_bias {
    std::size_t heads = 1;  // H

    auto operator()(const auto& e, const place& p) const
    {
        const double slope = std::exp2(-8.0 * (p.head + 1) / static_cast<double>(heads));
        return e - slope * (p.query - p.key);
    }
};

/// Attention with linear biases, one of `heads` heads; a multi_head tells each which it is. For queries that see no
/// later keys, `attend(memory, queries, causal{})`: a later key would be preferred.
///
///     softmax(q_i Kᵀ + m · [−(i − 1), …, −2, −1, 0])            section 3
///
/// Deviation: scaled dot products, as in the Transformer, where the paper leaves the scale out of its equation.
inline auto alibi(std::size_t heads)
{
    return attention{score::modified{score::scaled_dot{}, linear_bias{heads}}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::press2022
