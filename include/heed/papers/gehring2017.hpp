// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/heads/multi_hop.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/conv_s2s.hpp>

/// Gehring, Auli, Grangier, Yarats, Dauphin 2017, "Convolutional Sequence to Sequence Learning" (ConvS2S).
///
/// Queries are state_and_word{h, g}: the decoder layer's state and the embedding of the previous target word. The
/// paper's values are not the keys z_j but z_j + x_j, encoder output plus input embedding (eq. 2):
/// `attend.on(z, ops::add(z, x), lengths)`.
namespace heed::papers::gehring2017 {

/// The attention of one decoder layer.
///
///     d = W h + b + g,  a_j = softmax(dᵀ z_j),  c = Σ_j a_j (z_j + x_j)       eq. 1 and 2
template <class Matrix, class Vector>
auto layer(Matrix W, Vector b)  // [Q,D], [D]
{
    return attention{score::conv_s2s{std::move(W), std::move(b)}, normalize::softmax{}, combine::weighted_sum{}};
}

/// Attention of several layers, each of which asks with what the earlier ones found: section 3.3.
///
///     h ← h + c                               after each layer
///
/// Deviation: the paper has a convolution between the layers; here the caller may pass it as `update`. The whole system
/// has them: seq2seq/systems/gehring2017.hpp.
template <class Matrix, class Vector, class Update = add_context>
auto multi_step(std::vector<score::conv_s2s<Matrix, Vector>> layers, Update update = {})
{
    using hop = decltype(gehring2017::layer(std::declval<Matrix>(), std::declval<Vector>()));
    std::vector<hop> hops;
    for (auto& each : layers) hops.push_back(gehring2017::layer(std::move(each.W), std::move(each.b)));
    return multi_hop{std::move(hops), std::move(update)};
}

}  // namespace heed::papers::gehring2017
