// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/nn/dropout.hpp>
#include <heed/nn/run.hpp>
#include <heed/ops/shape.hpp>
#include <heed/seq2seq/batch.hpp>
#include <heed/seq2seq/embedding.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// The encoding of a batch of source sentences.
template <class Annotations, class Start, class Whole, class Last = nothing, class Context = nothing>
struct encoded {
    Annotations annotations;                   // [B,T,D]; undefined in the padding
    Start start;                               // [B,H] input for the decoder's initial state
    Whole whole;                               // [B,D] the sentence as one vector
    HEED_NO_UNIQUE_ADDRESS Last last{};        // the cell's state after the last word, if any
    HEED_NO_UNIQUE_ADDRESS Context context{};  // [B,K] the context of contextual embeddings, if any
    word_ids words{};                          // [T,B]
};
template <class Annotations, class Start, class Whole, class Last, class Context>
encoded(Annotations, Start, Whole, Last, Context, word_ids) -> encoded<Annotations, Start, Whole, Last, Context>;

/// The order in which an encoder reads a sentence.
using nn::direction;

/// The bidirectional encoder of RNNsearch: an annotation describes a word and its surroundings.
///
///     →h_t = →GRU(→h_{t-1}, E x_t),  ←h_t = ←GRU(←h_{t+1}, E x_t),  h_t = [→h_t; ←h_t]
///                                             Bahdanau et al. 2015, §3.2
///
/// Works with any cell (nn/cells.hpp): h_t is the output of an LSTM, and the output of the highest layer of stacked
/// cells.
template <class Embedding, class Cell, class Start>
struct bidirectional_encoder {
    Embedding embedding;  // [V,E], or a type of namespace embedding; for features embedding::projected or as_given
    Cell forward;
    Cell backward;
    Start forward_start;
    Start backward_start;

    /// The annotations [B,T,2H] of words [T,B] or of features [B,T,F], and the inputs of decoders. Throws shape_error
    /// unless each row has a length that fits.
    auto encode(const auto& source, const nn::dropout& drop = {}) const
    {
        embedding::require_source("bidirectional_encoder::encode", source);
        auto [x, context] = embedding::words_of(embedding, source, drop);  // [T,B,E]
        const auto read = [&, &x = x](const Cell& cell, const Start& start, direction reads) {
            return nn::run(cell, nn::begin_of(cell, start.state(shape_of(x)[1], x)), x, source.real, reads, drop)
                .outputs;
        };
        const auto forwards = read(forward, forward_start, direction::forward);
        const auto backwards = read(backward, backward_start, direction::backward);
        const auto both = drop.time_major(ops::concat(ops::stack(forwards), ops::stack(backwards)));  // [T,B,2H]
        auto annotations = ops::swap_axes(both);                                                      // [B,T,2H]
        auto whole = ops::concat(forwards.back(), backwards.front());                                 // [B,2H]
        return encoded{std::move(annotations), backwards.front(), std::move(whole), nothing{},
                       std::move(context),     source.words};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::bidirectional_encoder{
            visit("embedding", self.embedding), visit("forward", self.forward), visit("backward", self.backward),
            visit("forward_start", self.forward_start), visit("backward_start", self.backward_start)};
    }
};
template <class Embedding, class Cell, class Start>
bidirectional_encoder(Embedding, Cell, Cell, Start, Start) -> bidirectional_encoder<Embedding, Cell, Start>;

/// The encoder of RNNencdec: it reads the sentence once, and its last state represents the whole sentence.
///
///     h_t = GRU(h_{t-1}, E x_t),  the sentence is h_T           Cho et al. 2014, §2.2
///
/// direction::backward reads from the last word to the first (Sutskever et al. 2014; "reverse" in Luong et al. 2015,
/// table 1); annotations stay in word order, and the sentence is h_1.
template <class Embedding, class Cell, class Start>
struct forward_encoder {
    Embedding embedding;  // [V,E], or a type of namespace embedding; for features embedding::projected or as_given
    Cell cell;
    Start start;
    direction reads = direction::forward;

    /// The annotations [B,T,H] of words [T,B] or of features [B,T,F], and the inputs of decoders. Throws shape_error
    /// unless each row has a length that fits.
    auto encode(const auto& source, const nn::dropout& drop = {}) const
    {
        embedding::require_source("forward_encoder::encode", source);
        auto [x, context] = embedding::words_of(embedding, source, drop);  // [T,B,E]
        auto read = nn::run(cell, nn::begin_of(cell, start.state(shape_of(x)[1], x)), x, source.real, reads, drop);
        auto annotations = ops::swap_axes(drop.time_major(ops::stack(read.outputs)));  // [B,T,H]
        const auto sentence = nn::output_of(read.last);                                // [B,H]
        return encoded{std::move(annotations), sentence,           sentence,
                       std::move(read.last),   std::move(context), source.words};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::forward_encoder{visit("embedding", self.embedding), visit("cell", self.cell),
                                        visit("start", self.start), self.reads};
    }
};
template <class Embedding, class Cell, class Start>
forward_encoder(Embedding, Cell, Start, direction = direction::forward) -> forward_encoder<Embedding, Cell, Start>;

/// The sizes of an encoder, for its factory.
struct encoder_sizes {
    std::size_t vocabulary = 0;  // V; for features, their number
    std::size_t embedding = 0;   // E
    std::size_t hidden = 0;      // H
    std::size_t annotation = 0;  // D; bidirectional_encoder has 2H, forward_encoder H
};

/// The sizes, with the factories of an encoder's cells and embedding.
template <class Cells, class Words>
struct encoder_parts : encoder_sizes {
    Cells cells;
    Words words;

    /// A cell that reads embeddings.
    template <class T>
    auto cell(const nn::initializers<T>& init) const
    {
        return nn::make_part(cells, init, nn::cell_sizes{embedding, hidden});
    }

    /// The embedding of words or features.
    template <class T>
    auto embed(const nn::initializers<T>& init) const
    {
        return nn::make_part(words, init, embedding::embedding_sizes{vocabulary, embedding});
    }
};
template <class Cells, class Words>
encoder_parts(encoder_sizes, Cells, Words) -> encoder_parts<Cells, Words>;

/// Makes bidirectional encoders. Initial states are trained.
struct bidirectional_encoder_factory {
    template <class... Of>
    auto operator()(const auto& init, const encoder_parts<Of...>& n) const
    {
        return bidirectional_encoder{n.embed(init), n.cell(init), n.cell(init), nn::trained_start{init.zeros(n.hidden)},
                                     nn::trained_start{init.zeros(n.hidden)}};
    }
    static std::size_t width(std::size_t hidden) { return 2 * hidden; }  // D of H
};
/// Makes encoders that read in one direction. The initial state is trained.
struct forward_encoder_factory {
    direction reads = direction::forward;

    template <class... Of>
    auto operator()(const auto& init, const encoder_parts<Of...>& n) const
    {
        return forward_encoder{n.embed(init), n.cell(init), nn::trained_start{init.zeros(n.hidden)}, reads};
    }
    static std::size_t width(std::size_t hidden) { return hidden; }  // D of H
};

}  // namespace heed::inline HEED_TARGET::seq2seq
