// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/modified.hpp>
#include <heed/score/scaled_dot.hpp>
#include <heed/simd/place.hpp>

/// Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size".
namespace heed::papers::gemma2024 {

/// Scores that stay between −cap and cap: cap · tanh(e / cap).
struct soft_cap {
    double cap = 50;

    auto operator()(const auto& e, const place&) const { return cap * tanh(e / cap); }
};

/// Attention whose scores are capped softly; 50 in the paper's models.
///
///     softmax(c · tanh(Q Kᵀ / √d / c)) V           "Logit soft-capping"
inline auto capped(double cap = 50)
{
    return attention{score::modified{score::scaled_dot{}, soft_cap{cap}}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::gemma2024
