// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/heads/talking_heads.hpp>
#include <heed/papers/vaswani2017.hpp>

/// Shazeer, Lan, Cheng, Ding and Hou 2020, "Talking-Heads Attention".
namespace heed::papers::shazeer2020 {

/// The Transformer's heads, whose scores and weights are mixed over heads.
///
///     L_g = Σ_h P_l[h,g] Q_h K_hᵀ / √d,  U_v = Σ_g P_w[g,v] softmax(L_g)           section 4
///
/// As many heads of scores, weights and values; in the paper the numbers may differ.
template <class Matrix>
auto talking_heads(std::size_t heads, Matrix W_Q, Matrix W_K, Matrix W_V, Matrix W_O, Matrix P_l, Matrix P_w)
{
    return heed::talking_heads{
        vaswani2017::multi_head(heads, std::move(W_Q), std::move(W_K), std::move(W_V), std::move(W_O)), std::move(P_l),
        std::move(P_w)};
}

}  // namespace heed::papers::shazeer2020
