// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention.hpp>
#include <heed/attention/streaming.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/ratio.hpp>
#include <heed/score/kernel.hpp>

/// Katharopoulos et al. 2020, "Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention".
namespace heed::papers::katharopoulos2020 {

/// Linear attention.
///
///     V'_i = Σ_{j≤i} φ(Q_i) · φ(K_j) V_j / Σ_{j≤i} φ(Q_i) · φ(K_j),  φ(x) = elu(x) + 1        eq. 4, 7 and 8
///
/// `attend(memory, queries, causal{})` takes linear time; `streaming{attend}` is the recurrent network of eq. 16 to 20.
inline auto linear()
{
    return attention{score::kernel{score::elu_plus_one{}}, normalize::ratio{}, combine::weighted_sum{}};
}

}  // namespace heed::papers::katharopoulos2020
