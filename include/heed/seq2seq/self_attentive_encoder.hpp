// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <heed/papers/transformer.hpp>
#include <heed/seq2seq/encoder.hpp>
#include <heed/seq2seq/transformer.hpp>

/// The encoder of the Transformer, for any decoder that attends to annotations.
namespace heed::inline HEED_TARGET::seq2seq {

/// Words or features, positions and layers of self-attention.
///
///     x = √D E w + PE, or features + PE;  x ← layer(x), …;  annotations = last(x)      Vaswani et al. 2017, §3.1
///
/// heed's choice: the mean of the annotations is the input of a recurrent decoder's initial state, and the sentence
/// vector.
template <class Embedding, class Positions, class Layer, class Last>
struct self_attentive_encoder {
    Embedding embedding;  // [V,D], or embedding::projected or as_given
    Positions positions;
    std::vector<Layer> layers;
    Last last;

    /// The annotations [B,T,D] of words [T,B] or of features [B,T,F]. Throws shape_error unless each row has a length
    /// that fits.
    auto encode(const auto& source, const nn::dropout& drop = {}) const
    {
        embedding::require_source("self_attentive_encoder::encode", source);
        auto x = drop(positions(embedded(source)));
        for (const Layer& layer : layers) x = layer(x, source.real, drop);
        auto annotations = last(x);
        auto mean =
            ops::weighted_sum(shares(source.real, annotations), ops::clear_padding(annotations, source.real));  // [B,D]
        auto start = mean;
        return encoded{std::move(annotations), std::move(start), std::move(mean), nothing{}, nothing{}, source.words};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::self_attentive_encoder{visit("embedding", self.embedding), visit("positions", self.positions),
                                               visit("layers", self.layers), visit("last", self.last)};
    }

private:
    /// [B,T,D]
    auto embedded(const auto& source) const
    {
        if constexpr (requires { source.features; }) {
            return embedding.of(source);
        } else {
            const double root = std::sqrt(static_cast<double>(shape_of(embedding)[1]));
            return ops::scale(ops::swap_axes(ops::clear_ended(ops::lookup(embedding, source.words), source.real)),
                              root);
        }
    }

    /// 1 / T for each of a row's T positions.
    static auto shares(const lengths& real, const tensor auto& annotations)
    {
        using T = element_of<decltype(annotations)>;
        const std::size_t B = shape_of(annotations)[0], P = shape_of(annotations)[1];
        auto all = filled<T, 2>({B, P}, T(0));
        for (std::size_t b = 0; b < B; ++b) std::fill_n(all.data() + b * P, real[b], T(1) / static_cast<T>(real[b]));
        return all;
    }
};
template <class Embedding, class Positions, class Layer, class Last>
self_attentive_encoder(Embedding, Positions, std::vector<Layer>, Last)
    -> self_attentive_encoder<Embedding, Positions, Layer, Last>;

/// Makes encoders of the same width as the decoder's state and the embedding, with post-norm and sinusoidal positions.
/// Throws shape_error if the two differ, and heed::error unless the number of heads divides the width.
struct self_attentive_encoder_factory {
    std::size_t layers = 2, heads = 4;
    std::size_t feed_forward = 0;  // hidden units; 0: four times the width

    template <class T, class... Of>
    auto operator()(const nn::initializers<T>& init, const encoder_parts<Of...>& n) const
    {
        require_shape<1>("self_attentive_encoder_factory", "the embedding", {n.embedding}, {n.hidden},
                         "as wide as the annotations, which are as wide as the decoder's state");
        auto words = n.embed(init);
        const nn::layer_sizes sizes{n.hidden, feed_forward == 0 ? 4 * n.hidden : feed_forward};
        const auto layer = [&] {
            const auto around = [&] { return nn::post_norm_factory{}(init, sizes); };
            return transformer_encoder_layer{papers::vaswani2017::make_multi_head<T>(init, {n.hidden, heads}), around(),
                                             nn::feed_forward_factory{}(init, sizes), around()};
        };
        std::vector<decltype(layer())> all;
        for (std::size_t i = 0; i < layers; ++i) all.push_back(layer());
        return self_attentive_encoder{std::move(words), nn::sinusoidal_positions{}, std::move(all), nn::identity{}};
    }
    static std::size_t width(std::size_t hidden) { return hidden; }  // D of H
};

}  // namespace heed::inline HEED_TARGET::seq2seq
