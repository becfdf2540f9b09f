// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

#include <heed/papers/translation.hpp>
#include <heed/seq2seq/convolutional.hpp>

/// Gehring et al. 2017, the whole ConvS2S.
namespace heed::papers::gehring2017 {

/// The attention of a new layer of a decoder, asked with h [.,H] and √½ g. The code's √½ of W h + b is in the initial
/// W.
template <class T>
struct new_layer {
    auto operator()(random_source& random, const seq2seq::convolutional_sizes& n) const
    {
        auto W = nn::gaussian<T>(random, n.hidden, n.embedding, std::sqrt(0.5 / static_cast<double>(n.hidden)));
        return gehring2017::layer(std::move(W), nn::zeros<T>(n.embedding));
    }
};

/// A new encoder and decoder of gated convolutions, with attention in every layer of the decoder.
///
///     auto model = papers::gehring2017::translator<float>(seed, {.source_vocabulary = V, .target_vocabulary = V});
///
/// make_attention(random, sizes) makes another attention, and `positions` others, such as nn::new_sinusoidal_positions.
template <class T, class MakeAttention = new_layer<T>, class Positions = nn::new_learned_positions>
auto translator(std::uint64_t seed, const seq2seq::convolutional_sizes& n, MakeAttention&& make_attention = {},
                const Positions& positions = {0.1})
{
    return seq2seq::make_convolutional<T>(seed, n, make_attention, positions);
}

}  // namespace heed::papers::gehring2017
