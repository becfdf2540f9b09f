// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heed/papers/transformer.hpp>
#include <heed/seq2seq/transformer.hpp>

/// Vaswani et al. 2017, the complete Transformer.
namespace heed::inline HEED_TARGET::papers::vaswani2017 {

/// The sizes of the base model (table 3). The big model has model 1024, hidden 4096, heads 16.
struct translator_sizes {
    std::size_t source_vocabulary = 0, target_vocabulary = 0;
    std::size_t model = 512;         // d_model
    std::size_t hidden = 2048;       // d_ff
    std::size_t heads = 8;           // h
    std::size_t encoder_layers = 6;  // N
    std::size_t decoder_layers = 6;
    std::size_t longest = 1024;  // number of learned positions
};

/// A new Transformer. Attention matrices are drawn by glorot; the vectors of positions and words are normal with
/// deviation 1/√d_model. Each part has a factory that can be replaced (nn/factory.hpp):
///
///     namespace paper = papers::vaswani2017;
///     auto base = paper::translator<float>(seed, {.source_vocabulary = 32000, .target_vocabulary = 32000});
///     auto other = paper::translator<float>(seed, n, seq2seq::tied_tables_factory{}, nn::learned_positions_factory{},
///                                           nn::pre_norm_factory{}, nn::feed_forward_factory{ops::gelu});
///
/// Throws heed::error unless the number of heads divides the width and there is at least one layer each.
template <class T, class Tables = seq2seq::shared_table_factory, class Positions = nn::sinusoidal_positions,
          class Residual = nn::post_norm_factory, class FeedForward = nn::feed_forward_factory<>>
auto translator(std::uint64_t seed, const translator_sizes& n, const Tables& tables = {},
                const Positions& positions = {}, const Residual& residual = {}, const FeedForward& feed_forward = {})
{
    if (n.encoder_layers == 0 || n.decoder_layers == 0)
        throw error("vaswani2017::translator: no layers; encoder and decoder need at least one each");
    random_source random{seed, 0};
    const nn::initializers<T> init{random};
    const nn::layer_sizes of_layer{n.model, n.hidden};
    const auto attention = [&] { return vaswani2017::make_multi_head<T>(random, {n.model, n.heads}); };
    const auto around = [&] { return nn::make_part(residual, init, of_layer); };
    const auto two_layers = [&] { return nn::make_part(feed_forward, init, of_layer); };
    auto words = nn::make_part(tables, init, seq2seq::table_sizes{n.source_vocabulary, n.target_vocabulary, n.model});
    auto places = nn::make_part(positions, init, nn::position_sizes{n.longest, n.model});
    const auto encoder_layer = [&] {
        auto self = attention();
        return seq2seq::transformer_encoder_layer{std::move(self), around(), two_layers(), around()};
    };
    const auto decoder_layer = [&] {
        auto self = attention();
        auto cross = attention();
        return seq2seq::transformer_decoder_layer{std::move(self), std::move(cross), around(),
                                                  around(),        two_layers(),     around()};
    };
    std::vector<decltype(encoder_layer())> encoder;
    for (std::size_t i = 0; i < n.encoder_layers; ++i) encoder.push_back(encoder_layer());
    std::vector<decltype(decoder_layer())> decoder;
    for (std::size_t i = 0; i < n.decoder_layers; ++i) decoder.push_back(decoder_layer());
    auto after_encoder = encoder.back().around_feed_forward.last_norm();
    auto after_decoder = decoder.back().around_feed_forward.last_norm();
    return seq2seq::transformer{std::move(words),
                                std::move(places),
                                std::move(encoder),
                                std::move(after_encoder),
                                std::move(decoder),
                                std::move(after_decoder),
                                init.zeros(n.target_vocabulary)};
}

}  // namespace heed::inline HEED_TARGET::papers::vaswani2017
