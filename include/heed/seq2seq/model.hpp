// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/sums.hpp>
#include <heed/score/over.hpp>
#include <heed/seq2seq/candidates.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// The start of a batch: the values that stay constant during decoding, and the state before the first word.
template <class Memory, class State>
struct opening {
    Memory memory;
    State state;
};
template <class Memory, class State>
opening(Memory, State) -> opening<Memory, State>;

/// One step of a decoder up to its output layer: the scores of the words are readout W + b.
template <class Readout, class State, class Seen>
struct advanced {
    Readout readout;  // [1,B,L]
    State state;      // the next state
    Seen seen;        // the attention's result: the context, and the weights if any
};
template <class Readout, class State, class Seen>
advanced(Readout, State, Seen) -> advanced<Readout, State, Seen>;

/// The attention weights of a step, for models that return only these.
template <class Weights>
struct seen_weights {
    Weights weights;  // [R,T]
};
template <class Weights>
seen_weights(Weights) -> seen_weights<Weights>;

/// The last layer of a model: the scores of all words are readout W + b. The types are references or owned arrays.
template <class Matrix, class Vector>
struct output_layer {
    Matrix W;  // [L,V]
    Vector b;  // [V]
};

/// The results of a batch with the true previous words (teacher forcing): costs and attention.
template <class Costs, class Weights, class State>
struct teacher_forced {
    Costs costs;  // [S,B] the cost of each word: its weight in the batch times −log p; 0 in the padding
    std::vector<Weights> weights;  // [B,T] of each step; averaged over dimensions or heads
    State state;                   // of the attention, after the last step

    /// The cross-entropy: Σ −log p, equal to the model's `loss`.
    auto loss() const { return ops::sum_last(ops::sum_last(costs)); }
};
template <class Costs, class Weights, class State>
teacher_forced(Costs, std::vector<Weights>, State) -> teacher_forced<Costs, Weights, State>;

/// A model that can be searched, such as `translator`.
///
///     open(source)                        an `opening`: the constants of a batch, and a state with map(f)
///     advance(memory, state, previous)    an `advanced`: every row reads its previous word
///     output()                            an `output_layer`, whose scores the search computes
///
/// `seen.weights` of the result of `advance`, if it exists, has the attention weights: [R,T], or the type of
/// `decoder.attention`.
template <class Model>
concept searchable = requires(const Model& model, const source_batch& source, const word_ids& previous)
{
    model.advance(model.open(source).memory, model.open(source).state, previous).readout;
    model.output().W;
    model.output().b;
};

namespace detail {

/// Does an attention return the weights of several heads or hops?
template <class Attention>
inline constexpr bool several_at_once = requires(const Attention& a)
{
    a.heads;
}
|| requires(const Attention& a) { a.hops; };

/// Calls use(W, b, expected) with all words or, given `only`, with these words.
template <class T>
auto of_words(const auto& output, const ops::expected_words<T>& expected, const std::vector<std::uint32_t>* only,
              const auto& use)
{
    if (only == nullptr) return use(output.W, output.b, expected);
    const ops::expected_words<T> among{places_in<T>(*only, expected.words, expected.weights), expected.weights};
    return use(ops::columns_of(output.W, *only), ops::columns_of(output.b, *only), among);
}

/// Σ −log softmax(readout W + b) of the expected words, readout [S,B,L]. `only`: see decoder::loss.
template <class T>
auto cross_entropy(const tensor auto& readout, const auto& output, const ops::expected_words<T>& expected, T smoothing,
                   const std::vector<std::uint32_t>* only)
{
    return detail::of_words(output, expected, only, [&](const auto& W, const auto& b, const auto& words) {
        return ops::cross_entropy(readout, W, b, words, smoothing);
    });
}

/// As above, for each word: [S,B].
template <class T>
auto cross_entropy_per_word(const tensor auto& readout, const auto& output, const ops::expected_words<T>& expected,
                            T smoothing, const std::vector<std::uint32_t>* only)
{
    return detail::of_words(output, expected, only, [&](const auto& W, const auto& b, const auto& words) {
        return ops::cross_entropy_per_word(ops::linear(readout, W, b), words, static_cast<double>(smoothing));
    });
}

/// Throws heed::error unless this row exists. The message begins with `where`.
inline void require_row(std::string_view where, std::size_t row, std::size_t rows)
{
    if (row < rows) return;
    throw error(std::string(where) + ": row " + std::to_string(row) + " of " + std::to_string(rows) +
                "; rows count from 0");
}

/// The weights [B,T] of an attention, averaged over dimensions [B,T,D] or over heads or hops [B,n,T].
template <class Attention>
auto weights_per_position(const tensor auto& weights)
{
    if constexpr (rank_of<decltype(weights)> == 3 && several_at_once<Attention>) {
        return score::over::per_position(ops::transpose(weights));
    } else {
        return score::over::per_position(weights);
    }
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET::seq2seq
