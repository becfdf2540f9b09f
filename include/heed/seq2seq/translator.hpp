// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/papers/bahdanau2015.hpp>
#include <heed/papers/choi2018.hpp>
#include <heed/papers/sankaran2016.hpp>
#include <heed/seq2seq/decoder.hpp>
#include <heed/seq2seq/encoder.hpp>

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

    /// A batch, ready to be decoded: an `opening`.
    auto open(const source_batch& source) const { return decoder.open(encoder.encode(source), source.real); }

    /// One step of all rows: an `advanced`.
    auto advance(const auto& memory, const auto& state, const word_ids& previous) const
    {
        return decoder.advance(memory, state, previous);
    }

    auto output() const { return decoder.output(); }

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
};

/// A new translator around the attention that make_attention(random, sizes) returns: RNNsearch, or RNNencdec around
/// fixed_context. `recurrent` draws the recurrent weights, as for nn::make_gru: nn::orthogonal<T> initialises them as
/// Bahdanau et al. 2015 did. `cells`: nn::new_gru, or nn::new_lstm for long short-term memory on both sides.
template <class T, class MakeAttention, class Cells = nn::new_gru>
auto make_translator(std::uint64_t seed, const sizes& n, MakeAttention&& make_attention,
                     nn::initializer<T> recurrent = nullptr, const Cells& cells = {})
{
    random_source random{seed, 0};
    constexpr bool looks = !std::is_same_v<decltype(make_attention(random, n)), fixed_context>;
    auto encoder = [&] {
        if constexpr (looks) {
            return make_bidirectional_encoder<T>(random, n.source_vocabulary, n.embedding, n.hidden, recurrent, cells);
        } else {
            return make_forward_encoder<T>(random, n.source_vocabulary, n.embedding, n.hidden, recurrent, cells);
        }
    }();
    auto attention = make_attention(random, n);
    auto decoder = make_decoder<T>(random, std::move(attention), n.target_vocabulary, n.embedding, n.hidden,
                                   looks ? 2 * n.hidden : n.hidden, recurrent, cells);
    return translator{std::move(encoder), std::move(decoder)};
}

/// New attentions for a translator: the decoder's state [H] attends to annotations [2H].
namespace attentions {

template <class T>
struct additive {
    auto operator()(random_source& random, const sizes& n) const
    {
        return papers::bahdanau2015::make_additive<T>(random, {n.hidden, 2 * n.hidden, n.alignment});
    }
    static auto score(random_source& random, const sizes& n) { return additive{}(random, n).score; }
};

template <class T>
struct additive_with_word {
    auto operator()(random_source& random, const sizes& n) const
    {
        return papers::choi2018::make_att_y<T>(random, {n.hidden, 2 * n.hidden, n.alignment, n.embedding});
    }
};

template <class T>
struct per_dimension {
    auto operator()(random_source& random, const sizes& n) const
    {
        return papers::choi2018::make_att_y_2d<T>(random, {n.hidden, 2 * n.hidden, n.alignment, n.embedding});
    }
};

template <class T>
struct temporal {
    auto operator()(random_source& random, const sizes& n) const
    {
        return papers::sankaran2016::make_temporal<T>(random, {n.hidden, 2 * n.hidden, n.alignment});
    }
};

template <class T>
struct none {
    auto operator()(random_source&, const sizes&) const { return fixed_context{}; }
};

}  // namespace attentions

}  // namespace heed::seq2seq
