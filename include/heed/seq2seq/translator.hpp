// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/papers/translation.hpp>
#include <heed/seq2seq/decoder.hpp>

namespace heed::seq2seq {

/// An encoder and a decoder that are trained together.
template <class Encoder, class Decoder>
struct translator {
    Encoder encoder;
    Decoder decoder;

    /// Σ −log p(target | source) of a batch, in nats. `only`: over these words alone, see decoder::loss.
    template <class T>
    auto loss(const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {},
              const std::vector<std::uint32_t>* only = nullptr) const
    {
        return decoder.loss(encoder.encode(batch.source, drop), batch, smoothing, drop, only);
    }

    /// The same as a `followed`, for losses that ask for weights: see loss_with.
    template <class T>
    auto follow(const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {},
                const std::vector<std::uint32_t>* only = nullptr) const
    {
        return decoder.follow(encoder.encode(batch.source, drop), batch, smoothing, drop, only);
    }

    /// The loss of a batch whose source is features.
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
    std::size_t readout = 0;      // of what the output layer reads; 0: as many as an embedding has

    std::size_t width() const { return annotation == 0 ? 2 * hidden : annotation; }  // D of an annotation
};

/// A new translator around the attention that make_attention(random, sizes) returns. `recurrent`: as for nn::make_gru.
template <class T, class MakeAttention, class... Part>
auto make_translator(std::uint64_t seed, sizes n, const MakeAttention& make_attention, const parts<Part...>& made,
                     nn::initializer<T> recurrent = nullptr)
{
    random_source random{seed, 0};
    n.annotation = made.encoder.width(n.hidden);
    auto encoder = made.encoder.template make<T>(random, n.source_vocabulary, n.embedding, n.hidden, recurrent,
                                                 made.cells, made.embeddings);
    auto attention = make_attention(random, n);
    const std::size_t readout = n.readout == 0 ? n.embedding : n.readout;
    auto decoder =
        make_decoder<T>(random, std::move(attention),
                        {n.target_vocabulary, n.embedding, n.hidden, n.annotation, readout}, made, recurrent);
    return translator{std::move(encoder), std::move(decoder)};
}

/// RNNsearch around this attention, or RNNencdec around fixed_context, with `cells` on both sides. nn::orthogonal<T> as
/// `recurrent` draws the recurrent weights as Bahdanau et al. 2015 did.
template <class T, class MakeAttention, class Cells = nn::new_gru>
auto make_translator(std::uint64_t seed, const sizes& n, const MakeAttention& make_attention,
                     nn::initializer<T> recurrent = nullptr, const Cells& cells = {})
{
    const auto made = parts{}.with_cells(cells);
    if constexpr (std::is_invocable_r_v<fixed_context, const MakeAttention&, random_source&, const sizes&>) {
        return make_translator<T>(seed, n, make_attention, made.with_encoder(new_forward{}), recurrent);
    } else {
        return make_translator<T>(seed, n, make_attention, made, recurrent);
    }
}

/// New attentions for a translator: the decoder's state [H] attends to annotations [D].
namespace attentions {

/// Makes the attention of Bahdanau et al. 2015.
template <class T>
struct additive {
    auto operator()(random_source& random, const sizes& n) const
    {
        return papers::bahdanau2015::make_additive<T>(random, {n.hidden, n.width(), n.alignment});
    }
    static auto score(random_source& random, const sizes& n) { return additive{}(random, n).score; }  // its score alone
};

/// Makes AttY of Choi et al. 2018: the score also reads the previous target word.
template <class T>
struct additive_with_word {
    auto operator()(random_source& random, const sizes& n) const
    {
        return papers::choi2018::make_att_y<T>(random, {n.hidden, n.width(), n.alignment, n.embedding});
    }
};

/// Makes AttY2D of Choi et al. 2018: as AttY, with a weight for each dimension.
template <class T>
struct per_dimension {
    auto operator()(random_source& random, const sizes& n) const
    {
        return papers::choi2018::make_att_y_2d<T>(random, {n.hidden, n.width(), n.alignment, n.embedding});
    }
};

/// Makes the temporal attention of Sankaran et al. 2016.
template <class T>
struct temporal {
    auto operator()(random_source& random, const sizes& n) const
    {
        return papers::sankaran2016::make_temporal<T>(random, {n.hidden, n.width(), n.alignment});
    }
};

/// No attention: the sentence as the encoder leaves it, at every step.
template <class T>
struct none {
    auto operator()(random_source&, const sizes&) const { return fixed_context{}; }
};

}  // namespace attentions

}  // namespace heed::seq2seq
