// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/core/mechanism_list.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/factory.hpp>
#include <heed/nn/feed_forward.hpp>
#include <heed/nn/positions.hpp>
#include <heed/nn/residual.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/masks.hpp>
#include <heed/seq2seq/model.hpp>

/// The Transformer: an encoder and a decoder of attention and feed-forward layers.
///
///     encoder layer    x ← x + SelfAttention(x),  x ← x + FFN(x)
///     decoder layer    y ← y + SelfAttention(y, no later words),  y ← y + Attention(y, x),  y ← y + FFN(y)
///     p(y_i) = softmax(y_i W + b)                 Vaswani et al. 2017, section 3.1 and figure 1
///
/// with layer normalization around each sum (nn/residual.hpp). The inputs are √D E w + position. In a search, each
/// layer stores the previous words in a KV cache (attention/memory.hpp). Any attention with contexts [B,S,D] for
/// queries [B,S,D] fits; for a search, it must support `extend`. Deviation: a bias in the output layer.
namespace heed::inline HEED_TARGET::seq2seq {

/// One layer of the encoder: self-attention and a feed-forward network, each within a residual connection.
///
///     x ← norm(x + SelfAttention(x)),  x ← norm(x + FFN(x))         with nn::post_norm, section 3.1
template <class Attention, class Residual, class FeedForward>
struct transformer_encoder_layer {
    Attention attention;
    Residual around_attention;
    FeedForward feed_forward;
    Residual around_feed_forward;

    auto operator()(const tensor auto& x, const lengths& real, const nn::dropout& drop = {}) const  // [B,T,D]
    {
        const auto seen = around_attention.around(
            x, [&](const auto& in) { return attention(attention.on(in, real), in); }, drop);
        return around_feed_forward.around(seen, feed_forward, drop);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::transformer_encoder_layer{
            visit("attention", self.attention), visit("around_attention", self.around_attention),
            visit("feed_forward", self.feed_forward), visit("around_feed_forward", self.around_feed_forward)};
    }
};
template <class Attention, class Residual, class FeedForward>
transformer_encoder_layer(Attention, Residual, FeedForward, Residual)
    -> transformer_encoder_layer<Attention, Residual, FeedForward>;

/// One layer of the decoder: self-attention, attention to the source, a feed-forward network, each with a residual.
///
///     y ← norm(y + SelfAttention(y, no later words)),  y ← norm(y + Attention(y, x)),  y ← norm(y + FFN(y))
template <class Self, class Cross, class Residual, class FeedForward>
struct transformer_decoder_layer {
    Self self;    // to the previous words
    Cross cross;  // to the source
    Residual around_self;
    Residual around_cross;
    FeedForward feed_forward;
    Residual around_feed_forward;

    /// All words y [B,S,D] at once. Words do not see later ones, so padding needs no mask.
    auto operator()(const tensor auto& y, const auto& memory, const nn::dropout& drop = {}) const
    {
        return through(
            y, [&](const auto& in) { return self(self.on(in), in, causal{}); },
            [&](const auto& in) { return cross(memory, in); }, drop);
    }

    /// As above, and returns `weights` of each word: [B,T].
    auto follow(const tensor auto& y, const auto& memory, const nn::dropout& drop, auto& weights) const
    {
        return through(
            y, [&](const auto& in) { return self(self.on(in), in, causal{}); },
            [&](const auto& in) { return look(memory, in, weights); }, drop);
    }

    /// The next word y [B,1,D], and its `weights` unless null. `kept` is the KV cache of the words; `first` creates it.
    auto step(const tensor auto& y, auto& kept, bool first, const auto& memory, auto* weights) const
    {
        return through(
            y,
            [&](const auto& in) {
                kept = first ? heed::with_cache(self.on(in)) : self.extend(kept, in);
                return self.read_all(kept, in, from_query(self.start(kept), kept.positions() - 1)).contexts;
            },
            [&](const auto& in) { return weights == nullptr ? read(memory, in) : look(memory, in, *weights); }, {});
    }

    static auto parameters(auto& layer, auto&& visit)
    {
        return seq2seq::transformer_decoder_layer{visit("self", layer.self),
                                                  visit("cross", layer.cross),
                                                  visit("around_self", layer.around_self),
                                                  visit("around_cross", layer.around_cross),
                                                  visit("feed_forward", layer.feed_forward),
                                                  visit("around_feed_forward", layer.around_feed_forward)};
    }

private:
    auto through(const tensor auto& y, const auto& see_words, const auto& see_source, const nn::dropout& drop) const
    {
        const auto before = around_self.around(y, see_words, drop);
        const auto seen = around_cross.around(before, see_source, drop);
        return around_feed_forward.around(seen, feed_forward, drop);
    }

    /// A single word.
    auto read(const auto& memory, const tensor auto& y) const
    {
        auto answer = cross.read(memory, ops::step_of(y, std::size_t{0}), cross.start(memory));
        return ops::swap_axes(ops::stack(std::vector{std::move(answer.context)}));
    }

    /// One word at a time, since weights exist only then.
    auto look(const auto& memory, const tensor auto& y, auto& weights) const
    {
        const auto ask = [&](std::size_t s) { return cross.step(memory, ops::step_of(y, s), cross.start(memory)); };
        std::vector<std::remove_cvref_t<decltype(ask(0).context)>> contexts;
        weights.clear();
        for (std::size_t s = 0; s < shape_of(y)[1]; ++s) {
            auto answer = ask(s);
            weights.push_back(detail::weights_per_position<Cross>(answer.weights));
            contexts.push_back(std::move(answer.context));
        }
        return ops::swap_axes(ops::stack(contexts));
    }
};
template <class Self, class Cross, class Residual, class FeedForward>
transformer_decoder_layer(Self, Cross, Residual, Residual, FeedForward, Residual)
    -> transformer_decoder_layer<Self, Cross, Residual, FeedForward>;

namespace detail {

/// Applies f to the tensors of a memory, which has no padding.
template <class Values, class Keys>
auto map_memory(const memory<Values, Keys>& from, const auto& f)
{
    auto values = f(from.values);
    auto keys = f(from.keys);
    const auto shape = shape_of(values);
    return memory<decltype(values), decltype(keys)>{std::move(values), std::move(keys),
                                                    lengths::full(shape[0], shape[1])};
}
template <class Memories>
auto map_memory(const memory_list<Memories>& from, const auto& f)
{
    return memory_list{
        heed::detail::each_of(from.of, [&](auto i) { return detail::map_memory(heed::detail::nth(from.of, i), f); })};
}

}  // namespace detail

/// The previous words in the form that every decoder layer reads; empty before the first word.
template <class Memory>
struct transformer_state {
    std::vector<Memory> kept;  // one per layer
    std::size_t words = 0;

    transformer_state map(const auto& f) const
    {
        if (words == 0) return *this;
        return {heed::detail::each_of(kept, [&](std::size_t i) { return detail::map_memory(kept[i], f); }), words};
    }
};

/// Three matrices: E_x of source words, E_y of target words, and logits = y W + b. The tables of a `transformer` are a
/// policy with source(), target() and output().
template <class Matrix>
struct separate_tables {
    Matrix source_table;  // [V_x,D]
    Matrix target_table;  // [V_y,D]
    Matrix W;             // [D,V_y]

    const Matrix& source() const { return source_table; }  // [V_x,D]
    const Matrix& target() const { return target_table; }  // [V_y,D]
    const Matrix& output() const { return W; }             // [D,V_y]

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::separate_tables{visit("source", self.source_table), visit("target", self.target_table),
                                        visit("W", self.W)};
    }
};
template <class Matrix>
separate_tables(Matrix, Matrix, Matrix) -> separate_tables<Matrix>;

/// The output layer uses the target embeddings as its matrix: W = target()ᵀ.      Press and Wolf 2017
template <class Matrix>
struct tied_tables {
    Matrix source_table;  // [V_x,D]
    Matrix target_table;  // [V_y,D]

    const Matrix& source() const { return source_table; }  // [V_x,D]
    const Matrix& target() const { return target_table; }
    auto output() const { return ops::transpose(target_table); }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::tied_tables{visit("source", self.source_table), visit("target", self.target_table)};
    }
};
template <class Matrix>
tied_tables(Matrix, Matrix) -> tied_tables<Matrix>;

/// One matrix for everything, E_x = E_y = Wᵀ: both languages share one vocabulary.          Vaswani et al. 2017,
/// section 3.4
template <class Matrix>
struct shared_table {
    Matrix table;  // [V,D]

    const Matrix& source() const { return table; }         // [V,D]
    const Matrix& target() const { return table; }         // [V,D]
    auto output() const { return ops::transpose(table); }  // [D,V]

    static auto parameters(auto& self, auto&& visit) { return seq2seq::shared_table{visit("table", self.table)}; }
};
template <class Matrix>
shared_table(Matrix) -> shared_table<Matrix>;

/// The sizes of a Transformer's tables, for their factory.
struct table_sizes {
    std::size_t source_vocabulary = 0, target_vocabulary = 0;
    std::size_t width = 0;  // D

    double deviation() const { return 1 / std::sqrt(static_cast<double>(width)); }  // of embeddings
};

/// Makes separate_tables. Embeddings are normal with deviation 1/√D.
struct separate_tables_factory {
    auto operator()(const auto& init, const table_sizes& n) const
    {
        return separate_tables{init.gaussian(n.source_vocabulary, n.width, n.deviation()),
                               init.gaussian(n.target_vocabulary, n.width, n.deviation()),
                               init.glorot(n.width, n.target_vocabulary)};
    }
};
/// Makes tied_tables: the output layer is the table of target words.
struct tied_tables_factory {
    auto operator()(const auto& init, const table_sizes& n) const
    {
        return tied_tables{init.gaussian(n.source_vocabulary, n.width, n.deviation()),
                           init.gaussian(n.target_vocabulary, n.width, n.deviation())};
    }
};
/// Makes shared_table. Throws heed::error if the vocabularies differ in size.
struct shared_table_factory {
    auto operator()(const auto& init, const table_sizes& n) const
    {
        if (n.source_vocabulary != n.target_vocabulary) {
            throw error("shared_table: " + counted(n.source_vocabulary, "source word") + " and " +
                        counted(n.target_vocabulary, "target word") +
                        "; to share embeddings, both sides need one vocabulary");
        }
        return shared_table{init.gaussian(n.source_vocabulary, n.width, n.deviation())};
    }
};

/// A complete Transformer, p(y_i) = softmax(y_i W + b); `papers::vaswani2017::translator` makes the paper's model.
template <class Tables, class Positions, class EncoderLayer, class DecoderLayer, class Last, class Vector>
struct transformer {
    Tables words;         // separate_tables, tied_tables or shared_table
    Positions positions;  // nn/positions.hpp
    std::vector<EncoderLayer> encoder;
    Last after_encoder;  // the normalization after the last layer
    std::vector<DecoderLayer> decoder;
    Last after_decoder;
    Vector b;  // [V_y]

    /// The source's annotations [B,T,D].
    auto encode(const source_batch& source, const nn::dropout& drop = {}) const
    {
        auto x = embed(words.source(), source.words, source.real, 0, drop);
        for (const auto& layer : encoder) x = layer(x, source.real, drop);
        return after_encoder(x);
    }

    /// Σ −log p(target | source) of a batch, in nats. `only`: restricts the vocabulary to these words, see
    /// decoder::loss.
    template <class T>
    auto loss(const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {},
              const std::vector<std::uint32_t>* only = nullptr) const
    {
        return detail::cross_entropy(readouts(batch, drop), output(), batch.targets, smoothing, only);
    }

    /// The input of the output layer at every step of the batch (teacher forcing): [S,B,D].
    template <class T>
    auto readouts(const training_batch<T>& batch, const nn::dropout& drop = {}) const
    {
        const auto source = encode(batch.source, drop);
        auto y = embed(words.target(), batch.previous, batch.target_lengths(), 0, drop);  // [B,S,D]
        for (const auto& layer : decoder) y = layer(y, layer.cross.on(source, batch.source.real), drop);
        return ops::swap_axes(after_decoder(y));
    }

    /// Like loss, but returns a `teacher_forced`, with the weights of the aligning layer and no last state.
    template <class T>
    auto follow(const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {},
                const std::vector<std::uint32_t>* only = nullptr) const
    {
        const auto source = encode(batch.source, drop);
        auto y = embed(words.target(), batch.previous, batch.target_lengths(), 0, drop);  // [B,S,D]
        const auto on = [&](std::size_t i) { return decoder[i].cross.on(source, batch.source.real); };
        std::vector<std::remove_cvref_t<decltype(ops::step_of(y, std::size_t{0}))>> weights;  // [B,T]
        for (std::size_t i = 0; i < decoder.size(); ++i) {
            y = i == aligning() ? decoder[i].follow(y, on(i), drop, weights) : decoder[i](y, on(i), drop);
        }
        const auto readout = ops::swap_axes(after_decoder(y));
        return teacher_forced{detail::cross_entropy_per_word(readout, output(), batch.targets, smoothing, only),
                              std::move(weights), no_state{}};
    }

    /// The source's keys and values for each layer, and the state before the first word.
    auto open(const source_batch& batch) const
    {
        const auto source = encode(batch);
        using memory = std::remove_cvref_t<decltype(decoder.front().cross.on(source, batch.real))>;
        using kept = std::remove_cvref_t<decltype(heed::with_cache(decoder.front().self.on(source)))>;
        memory_list<std::vector<memory>> all;  // of each layer
        for (const auto& layer : decoder) all.of.push_back(layer.cross.on(source, batch.real));
        return opening{std::move(all), transformer_state<kept>{}};
    }

    /// The state is passed by value: a search moves its state in, and no stored words are copied.
    auto advance(const auto& memory, auto state, const word_ids& previous) const
    {
        const bool first = state.words == 0;
        if (first) state.kept.resize(decoder.size());
        auto y = embed(words.target(), previous, lengths::full(previous.batch, 1), state.words, {});  // [B,1,D]
        std::vector<std::remove_cvref_t<decltype(ops::step_of(y, std::size_t{0}))>> weights;          // [B,T]
        for (std::size_t i = 0; i < decoder.size(); ++i) {
            y = decoder[i].step(y, state.kept[i], first, memory.of[i], i == aligning() ? &weights : nullptr);
        }
        ++state.words;
        return advanced{ops::swap_axes(after_decoder(y)), std::move(state), seen_weights{std::move(weights[0])}};
    }

    /// The layer whose weights are returned, averaged over its heads: the last but one aligns best (Garg et al. 2019).
    std::size_t aligning() const { return decoder.size() < 2 ? 0 : decoder.size() - 2; }

    /// The last layer.
    auto output() const { return output_layer<decltype(words.output()), const Vector&>{words.output(), b}; }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::transformer{visit("words", self.words),
                                    visit("positions", self.positions),
                                    visit("encoder", self.encoder),
                                    visit("after_encoder", self.after_encoder),
                                    visit("decoder", self.decoder),
                                    visit("after_decoder", self.after_decoder),
                                    visit("b", self.b)};
    }

private:
    /// √D E w + position, sentence by sentence: [B,S,D]. Embeddings in the padding are not read.
    auto embed(const tensor auto& table, const word_ids& ids, const lengths& real, std::size_t first,
               const nn::dropout& drop) const
    {
        const double root = std::sqrt(static_cast<double>(shape_of(table)[1]));
        const auto x = ops::swap_axes(ops::clear_ended(ops::lookup(table, ids), real));
        return drop(positions(ops::scale(x, root), first));
    }
};
template <class Tables, class Positions, class EncoderLayer, class DecoderLayer, class Last, class Vector>
transformer(Tables, Positions, std::vector<EncoderLayer>, Last, std::vector<DecoderLayer>, Last, Vector)
    -> transformer<Tables, Positions, EncoderLayer, DecoderLayer, Last, Vector>;

}  // namespace heed::inline HEED_TARGET::seq2seq
