// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

#include <heed/papers/translation.hpp>
#include <heed/seq2seq/convolutional.hpp>

/// Gehring et al. 2017, the whole ConvS2S system.
namespace heed::inline HEED_TARGET::papers::gehring2017 {

/// Makes the attention of a decoder layer, with queries h [.,H] and √½ g. The factor √½ of W h + b in the authors' code
/// is part of the initial W.
struct layer_factory {
    auto operator()(const auto& init, const seq2seq::convolutional_sizes& n) const
    {
        auto W = init.gaussian(n.hidden, n.embedding, std::sqrt(0.5 / static_cast<double>(n.hidden)));
        return gehring2017::layer(std::move(W), init.zeros(n.embedding));
    }
};

/// A new encoder and decoder of gated convolutions, with attention in every layer of the decoder.
///
///     auto model = papers::gehring2017::translator<float>(seed, {.source_vocabulary = V, .target_vocabulary = V});
///
/// `attention` and `positions` are factories; nn::sinusoidal_positions{} is its own factory.
template <class T, class Attention = layer_factory, class Positions = nn::learned_positions_factory>
auto translator(std::uint64_t seed, const seq2seq::convolutional_sizes& n, const Attention& attention = {},
                const Positions& positions = {0.1})
{
    return seq2seq::make_convolutional<T>(seed, n, attention, positions);
}

}  // namespace heed::inline HEED_TARGET::papers::gehring2017
