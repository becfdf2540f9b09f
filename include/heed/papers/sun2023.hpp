// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/heads/multi_head.hpp>
#include <heed/normalize/retention.hpp>
#include <heed/score/rotary.hpp>
#include <heed/score/scaled_dot.hpp>

/// Sun et al. 2023, "Retentive Network: A Successor to Transformer for Large Language Models".
namespace heed::papers::sun2023 {

/// Retention of one head, whose keys fade by γ with each word.
///
///     Retention(X) = (Q Kᵀ ⊙ D) V,  D_nm = γ^(n−m) for n ≥ m        eq. 5; Q and K turned with their positions, eq. 4
///
/// Keys are divided by √d, as the paper's "retention score normalization" and the authors' program have it.
/// Deviations: the two other factors there, √(Σ_m D_nm) and max(|Σ_m R_nm|, 1), only scale a row, which the norm behind
/// the heads cancels; and R_p turns pairs by Su et al.'s 10000^(−2m/d), where the authors' program has
/// 10000^(−m/(d/2−1)).
inline auto retention(double gamma)
{
    return attention{score::rotary{score::scaled_dot{}}, normalize::retention{gamma}, combine::weighted_sum{}};
}

/// Several heads, γ = 1 − 2^(−5−h) of head h.                        eq. 8
///
/// Without the norm and the gate behind the heads, which are layers of the model (nn/layer_norm.hpp).
template <class Matrix>
auto multi_scale(std::size_t heads, Matrix W_Q, Matrix W_K, Matrix W_V, Matrix W_O)
{
    std::vector<decltype(sun2023::retention(1))> all;
    for (std::size_t h = 0; h < heads; ++h)
        all.push_back(sun2023::retention(1 - std::exp2(-5.0 - static_cast<double>(h))));
    return multi_head{std::move(all), std::move(W_Q), std::move(W_K), std::move(W_V), std::move(W_O)};
}

}  // namespace heed::papers::sun2023
