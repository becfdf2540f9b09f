// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

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

/// The slopes of the paper's program, which differ where H is no power of 2. With P the largest power of 2 up to H, the
/// first P heads have the slopes of P heads; the others have every second slope of 2P heads, from the first one on:
///
///     m_h = 2^(−8 (h+1) / P)  for h < P,    2^(−8 (2 (h − P) + 1) / 2P)  for the others
///
/// So 12 heads have the 8 slopes 1/2 … 1/256 of 8 heads, and 2^−0.5, 2^−1.5, 2^−2.5 and 2^−3.5.
struct linear_bias_of_program {
    std::size_t heads = 1;  // H

    auto operator()(const auto& e, const place& p) const
    {
        const std::size_t power = std::bit_floor(heads);
        const auto first = static_cast<std::int32_t>(power);
        if (p.head < first) return linear_bias{power}(e, p);
        place as_of_twice = p;
        as_of_twice.head = 2 * (p.head - first);
        return linear_bias{2 * power}(e, as_of_twice);
    }
};

/// Attention with linear biases, one of `heads` heads; a multi_head tells each which it is. For queries that see no
/// later keys, `attend(memory, queries, causal{})`: a later key would be preferred.
///
///     softmax(q_i Kᵀ + m · [−(i − 1), …, −2, −1, 0])            section 3
///
/// The slopes are those of section 3 for any number of heads. The authors' program has the same for powers of 2 alone;
/// for a model that it trained with, say, 12 heads, take alibi_of_program().
///
/// Deviation: scaled dot products, as in the Transformer, where the paper leaves the scale out of its equation.
inline auto alibi(std::size_t heads)
{
    return attention{score::modified{score::scaled_dot{}, linear_bias{heads}}, normalize::softmax{},
                     combine::weighted_sum{}};
}

/// The same with the slopes of the authors' program.
inline auto alibi_of_program(std::size_t heads)
{
    return attention{score::modified{score::scaled_dot{}, linear_bias_of_program{heads}}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::press2022
