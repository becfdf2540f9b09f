// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/papers/translation.hpp>
#include <heed/seq2seq/decoder.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// An encoder and a decoder that are trained together.
///
///     log p(y | x) = Σ_i log p(y_i | y_{<i}, encode(x))           Cho et al. 2014; Sutskever et al. 2014
template <class Encoder, class Decoder>
struct translator {
    Encoder encoder;
    Decoder decoder;

    /// Σ −log p(target | source) of a batch, in nats. `only`: restricts the vocabulary to these words, see
    /// decoder::loss.
    template <class T>
    auto loss(const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {},
              const std::vector<std::uint32_t>* only = nullptr) const
    {
        return decoder.loss(encoder.encode(batch.source, drop), batch, smoothing, drop, only);
    }

    /// The input of the output layer at every step of the batch (teacher forcing): [S,B,L].
    template <class T>
    auto readouts(const training_batch<T>& batch, const nn::dropout& drop = {}) const
    {
        return decoder.readouts(encoder.encode(batch.source, drop), batch, drop);
    }

    /// Like loss, but returns a `teacher_forced`, for losses that depend on weights: see loss_with.
    template <class T>
    auto follow(const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {},
                const std::vector<std::uint32_t>* only = nullptr) const
    {
        return decoder.follow(encoder.encode(batch.source, drop), batch, smoothing, drop, only);
    }

    /// The loss of a batch with features as its source.
    template <class T, class Source>
        requires requires(const Source& source) { source.features; }
    auto loss(const Source& source, const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {}) const
    {
        return decoder.loss(encoder.encode(source, drop), batch, smoothing, drop);
    }

    auto open(const auto& source) const { return decoder.open(encoder.encode(source), source.real); }  // an `opening`

    auto advance(const auto& memory, const auto& state, const word_ids& previous) const
    {
        return decoder.advance(memory, state, previous);
    }

    auto output() const { return decoder.output(); }  // the decoder's

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::translator{visit("encoder", self.encoder), visit("decoder", self.decoder)};
    }
};
template <class Encoder, class Decoder>
translator(Encoder, Decoder) -> translator<Encoder, Decoder>;

/// The sizes of a translator.
struct sizes {
    std::size_t source_vocabulary = 0, target_vocabulary = 0;
    std::size_t embedding = 256;
    std::size_t hidden = 256;     // of each direction of the encoder, and of the decoder
    std::size_t alignment = 256;  // the hidden layer of the score
    std::size_t annotation = 0;   // of an annotation; 0: both directions of the encoder, 2 · hidden
    std::size_t readout = 0;      // size of the output layer's input; 0: that of an embedding

    std::size_t width() const { return annotation == 0 ? 2 * hidden : annotation; }  // D of an annotation
};

/// A new translator with an attention made by the factory `attention` and parts made by `with`. `recurrent`: see
/// nn::make_gru.
template <class T, class Attention, class... Part>
auto make_translator(std::uint64_t seed, sizes n, const Attention& attention, const parts<Part...>& with,
                     nn::initializer<T> recurrent = nullptr)
{
    random_source random{seed, 0};
    const nn::initializers<T> init{random, recurrent};
    if constexpr (requires { with.encoder.width(n.hidden); }) n.annotation = with.encoder.width(n.hidden);
    n.annotation = n.width();
    auto encoder = nn::make_part(
        with.encoder, init,
        encoder_parts{{n.source_vocabulary, n.embedding, n.hidden, n.annotation}, with.cells, with.source_words});
    auto attend = nn::make_part(attention, init, n);
    const std::size_t readout = n.readout == 0 ? n.embedding : n.readout;
    auto decoder = make_decoder(init, std::move(attend),
                                {n.target_vocabulary, n.embedding, n.hidden, n.annotation, readout}, with);
    return translator{std::move(encoder), std::move(decoder)};
}

/// RNNsearch with this attention, or RNNencdec with fixed_context, with `cells` on both sides. nn::orthogonal<T> as
/// `recurrent` draws the recurrent weights as in Bahdanau et al. 2015.
template <class T, class Attention, class Cells = nn::gru_factory>
auto make_translator(std::uint64_t seed, const sizes& n, const Attention& attention,
                     nn::initializer<T> recurrent = nullptr, const Cells& cells = {})
{
    const auto with = parts{}.with_cells(cells);
    if constexpr (std::is_same_v<nn::part_of<Attention, T, sizes>, fixed_context>) {
        return make_translator<T>(seed, n, attention, with.with_encoder(forward_encoder_factory{}), recurrent);
    } else {
        return make_translator<T>(seed, n, attention, with, recurrent);
    }
}

/// Makes an attention of three policies. Each is given as a factory or as a policy:
///
///     attention_factory{attentions::additive_score_factory{}, normalize::recent_temporal{5},
///     combine::direction_split{}}
template <class Score, class Normalize = normalize::softmax, class Combine = combine::weighted_sum>
struct attention_factory {
    Score score{};
    Normalize normalize{};
    Combine combine{};

    auto operator()(const auto& init, const sizes& n) const
    {
        return attention{nn::make_part(score, init, n), nn::make_part(normalize, init, n),
                         nn::make_part(combine, init, n)};
    }
};
template <class Score, class Normalize = normalize::softmax, class Combine = combine::weighted_sum>
attention_factory(Score, Normalize = {}, Combine = {}) -> attention_factory<Score, Normalize, Combine>;

/// Factories of attentions for a translator: the decoder's state [H] attends to annotations [D]. For no attention, use
/// fixed_context{}.
namespace attentions {

/// Makes the score of Bahdanau et al. 2015.
struct additive_score_factory {
    template <class T>
    auto operator()(const nn::initializers<T>& init, const sizes& n) const
    {
        return papers::bahdanau2015::make_additive<T>(init, {n.hidden, n.width(), n.alignment}).score;
    }
};

/// Makes the attention of Bahdanau et al. 2015.
using additive_factory = attention_factory<additive_score_factory>;

/// Makes the temporal attention of Sankaran et al. 2016.
using temporal_factory = attention_factory<additive_score_factory, normalize::temporal, combine::direction_split>;

/// Makes AttY of Choi et al. 2018: the score also reads the previous target word.
struct additive_with_word_factory {
    template <class T>
    auto operator()(const nn::initializers<T>& init, const sizes& n) const
    {
        return papers::choi2018::make_att_y<T>(init, {n.hidden, n.width(), n.alignment, n.embedding});
    }
};

/// Makes AttY2D of Choi et al. 2018: as AttY, with a weight for each dimension.
struct per_dimension_factory {
    template <class T>
    auto operator()(const nn::initializers<T>& init, const sizes& n) const
    {
        return papers::choi2018::make_att_y_2d<T>(init, {n.hidden, n.width(), n.alignment, n.embedding});
    }
};

}  // namespace attentions

}  // namespace heed::inline HEED_TARGET::seq2seq
