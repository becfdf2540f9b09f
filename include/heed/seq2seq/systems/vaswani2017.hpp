// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/papers/transformer.hpp>
#include <heed/seq2seq/transformer.hpp>

/// Vaswani et al. 2017, the whole Transformer.
namespace heed::papers::vaswani2017 {

/// The base model's sizes (table 3). The big one's: model 1024, hidden 4096, heads 16.
struct translator_sizes {
    std::size_t source_vocabulary = 0, target_vocabulary = 0;
    std::size_t model = 512;         // d_model
    std::size_t hidden = 2048;       // d_ff
    std::size_t heads = 8;           // h
    std::size_t encoder_layers = 6;  // N
    std::size_t decoder_layers = 6;
    std::size_t longest = 1024;  // positions that learned ones have
};

/// A new Transformer. Attention is drawn by glorot; the vectors of positions and words are normal with deviation
/// 1/√d_model. Each part is a maker that can be replaced:
///
///     namespace paper = papers::vaswani2017;
///     auto base = paper::translator<float>(seed, {.source_vocabulary = 32000, .target_vocabulary = 32000});
///     auto other = paper::translator<float>(seed, n, seq2seq::new_tied_tables{}, nn::new_learned_positions{},
///                                           nn::new_pre_norm{}, ops::gelu);
///
/// The last one is the feed-forward network's activation, or a maker of another network, such as nn::new_swiglu.
/// Throws heed::error unless the number of heads divides the width, and for no layer at all.
template <class T, class Tables = seq2seq::new_shared_table, class Positions = nn::new_sinusoidal_positions,
          class Residual = nn::new_post_norm, class Activation = std::remove_const_t<decltype(ops::relu)>>
auto translator(std::uint64_t seed, const translator_sizes& n, Tables tables = {}, Positions positions = {},
                Residual residual = {}, Activation activation = ops::relu)
{
    if (n.encoder_layers == 0 || n.decoder_layers == 0)
        throw error("vaswani2017::translator: no layer; encoder and decoder need at least one each");
    random_source random{seed, 0};
    const auto attention = [&] { return vaswani2017::make_multi_head<T>(random, {n.model, n.heads}); };
    const auto around = [&] { return residual.template make<T>(n.model); };
    const auto feed_forward = [&] { return nn::make_feed_forward<T>(random, n.model, n.hidden, activation); };
    auto words = tables.template make<T>(random, n.source_vocabulary, n.target_vocabulary, n.model);
    auto places = positions.template make<T>(random, n.longest, n.model);
    const auto encoder_layer = [&] {
        auto self = attention();
        return seq2seq::transformer_encoder_layer{std::move(self), around(), feed_forward(), around()};
    };
    const auto decoder_layer = [&] {
        auto self = attention();
        auto cross = attention();
        return seq2seq::transformer_decoder_layer{std::move(self), std::move(cross), around(),
                                                  around(),        feed_forward(),   around()};
    };
    std::vector<decltype(encoder_layer())> encoder;
    for (std::size_t i = 0; i < n.encoder_layers; ++i) encoder.push_back(encoder_layer());
    std::vector<decltype(decoder_layer())> decoder;
    for (std::size_t i = 0; i < n.decoder_layers; ++i) decoder.push_back(decoder_layer());
    auto last = [&] { return residual.template make_last<T>(n.model); };
    return seq2seq::transformer{std::move(words),
                                std::move(places),
                                std::move(encoder),
                                last(),
                                std::move(decoder),
                                last(),
                                nn::zeros<T>(n.target_vocabulary)};
}

}  // namespace heed::papers::vaswani2017
