// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/nn/cells.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/parts.hpp>
#include <heed/seq2seq/encoder.hpp>
#include <heed/seq2seq/fixed_context.hpp>
#include <heed/seq2seq/model.hpp>

namespace heed::seq2seq {

namespace detail {

/// Whether this attention's query must include the embedding of the previous word.
template <class Attention>
consteval bool reads_embedding()
{
    if constexpr (requires(const Attention& attention) { attention.score; }) {
        return score::over::reads_word<std::remove_cvref_t<decltype(std::declval<const Attention&>().score)>>();
    } else {
        return false;
    }
}

/// Does this attention's score project the words of all steps at once?
template <class Attention, class Words>
consteval bool projects_words()
{
    if constexpr (requires(const Attention& attention) { attention.score; }) {
        using score_type = std::remove_cvref_t<decltype(std::declval<const Attention&>().score)>;
        return score::over::projects_words<score_type, Words>();
    } else {
        return false;
    }
}

}  // namespace detail

/// What a recurrent decoder remembers between words, for each row.
template <class Cell, class Attention>
struct decoder_state {
    Cell cell;            // of the recurrent cell; its output [B,H] is s_i
    Attention attention;  // what the mechanism remembers

    /// The state with f applied to each of its tensors.
    auto map(const auto& f) const
    {
        auto c = nn::map_state(cell, f);
        auto a = attention.map(f);
        return seq2seq::decoder_state<decltype(c), decltype(a)>{std::move(c), std::move(a)};
    }
};
template <class Cell, class Attention>
decoder_state(Cell, Attention) -> decoder_state<Cell, Attention>;

/// The decoder of RNNsearch: it attends to the source before every word.
///
///     s_0 = tanh(W_s ←h_1 + b_s)
///     c_i = attention(s_{i-1}, h)             queried with the previous state
///     s_i = GRU(s_{i-1}, [E y_{i-1}; c_i])
///     t_i = maxout(U_o s_i + V_o E y_{i-1} + C_o c_i + b_o)
///     p(y_i) = softmax(W_o t_i + b)           Bahdanau et al. 2015, §3.1 and appendix A.2.2
///
/// Any cell fits in the GRU's place (nn/cells.hpp); of an LSTM s_i is the output, and its cell starts at 0.
/// Any attention fits, including `fixed_context` (none at all). A score that reads the previous word, by its constant
/// `reads_word`, gets E y_{i-1}. Deviations: t_i reads s_i where the appendix prints s_{i-1}, as the authors' code
/// does; biases.
template <class Attention, class Matrix, class Vector, class Cell>
struct decoder {
    Attention attention;
    Matrix embedding;  // [V,E]
    Cell cell;         // from E y
    Matrix C;          // [D,G] from the context to the cell; G = 3H of a GRU, 4H of an LSTM
    Matrix W_s;        // [H,H]
    Vector b_s;        // [H]
    Matrix U_o;        // [H,2L]
    Matrix V_o;        // [E,2L]
    Matrix C_o;        // [D,2L]
    Vector b_o;        // [2L]
    Matrix W_o;        // [L,V]
    Vector b;          // [V]

    auto open(const auto& source, const lengths& real) const
    {
        auto memory = [&] {
            if constexpr (requires { attention.on(source, real); }) {
                return attention.on(source, real);
            } else {
                return attention.on(source.annotations, real);
            }
        }();
        auto state = decoder_state{cell.begin(ops::tanh(ops::linear(source.start, W_s, b_s))), attention.start(memory)};
        return opening{std::move(memory), std::move(state)};
    }

    /// Σ −log p(y_i) over the batch, with the true previous word at every step (teacher forcing). `only`: the softmax
    /// is over these words alone, an ascending list that contains those of the references (candidate_lists).
    template <class T>
    auto loss(const auto& source, const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {},
              const std::vector<std::uint32_t>* only = nullptr) const
    {
        const auto start = open(source, batch.source.real);
        // zeros in the padding, whatever its embedding: products never read it
        const auto y =
            ops::clear_ended(drop(ops::lookup(embedding, batch.previous)), batch.target_lengths());  // [S,B,E]
        const auto inputs = cell.project(y);                                                         // [S,B,G]
        const auto words = project_words(y);  // [S,B,A] if the score reads them
        auto s = start.state.cell;
        auto state = start.state.attention;
        std::vector<std::remove_cvref_t<decltype(nn::output_of(s))>> states, contexts;
        for (std::size_t i = 0; i < batch.previous.steps; ++i) {
            auto seen = attention.read(start.memory, query(nn::output_of(s), words, i), state);
            s = cell.step(ops::linear_onto(ops::block(inputs, i), seen.context, C), s);
            state = std::move(seen.state);
            states.push_back(nn::output_of(s));
            contexts.push_back(std::move(seen.context));
        }
        const auto t = drop(readout(ops::stack(states), y, ops::stack(contexts)));  // [S,B,L]
        return detail::cross_entropy(t, output(), batch.targets, smoothing, only);
    }

    /// One decoding step of all rows from their previous words, up to the output layer.
    auto advance(const auto& memory, const auto& state, const word_ids& previous) const
    {
        const auto y = ops::lookup(embedding, previous);  // [1,B,E]
        auto seen = attend(memory, state, y);
        auto next =
            cell.step(ops::linear_onto(ops::block(cell.project(y), std::size_t{0}), seen.context, C), state.cell);
        auto t = readout(ops::stack(std::vector{nn::output_of(next)}), y, ops::stack(std::vector{seen.context}));
        decoder_state after{std::move(next), seen.state};
        return advanced{std::move(t), std::move(after), std::move(seen)};
    }

    output_layer<const Matrix&, const Vector&> output() const { return {W_o, b}; }

    /// The attention's part of a step. y [1,B,E]: the embeddings of the previous words.
    auto attend(const auto& memory, const auto& state, const tensor auto& y) const
    {
        const auto asked = query(nn::output_of(state.cell), project_words(y), 0);
        if constexpr (requires { attention.step(memory, asked, state.attention); }) {
            return attention.step(memory, asked, state.attention);
        } else {
            return attention.read(memory, asked, state.attention);
        }
    }

    /// Whether the attention reads the previous word.
    static constexpr bool attention_reads_word =
        detail::reads_embedding<Attention>() || detail::projects_words<Attention, Matrix>();

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::decoder{visit("attention", self.attention),
                                visit("embedding", self.embedding),
                                visit("cell", self.cell),
                                visit("C", self.C),
                                visit("W_s", self.W_s),
                                visit("b_s", self.b_s),
                                visit("U_o", self.U_o),
                                visit("V_o", self.V_o),
                                visit("C_o", self.C_o),
                                visit("b_o", self.b_o),
                                visit("W_o", self.W_o),
                                visit("b", self.b)};
    }

private:
    struct no_words {};

    /// The score's input from y [S,B,E], the words of all steps: nothing, Y y [S,B,A], or y itself.
    auto project_words(const tensor auto& y) const
    {
        if constexpr (detail::reads_embedding<Attention>()) {
            return y;
        } else if constexpr (detail::projects_words<Attention, std::remove_cvref_t<decltype(y)>>()) {
            return attention.score.project_words(y);
        } else {
            return no_words{};
        }
    }

    auto query(const tensor auto& s, const auto& words, std::size_t i) const
    {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(words)>, no_words>) {
            return s;
        } else if constexpr (detail::reads_embedding<Attention>()) {
            return state_and_word{s, ops::block(words, i)};
        } else {
            return state_and_projected_word{s, ops::block(words, i)};
        }
    }

    auto readout(const tensor auto& states, const tensor auto& y, const tensor auto& contexts) const
    {
        return ops::maxout(ops::linear_onto(ops::linear_onto(ops::linear(y, V_o, b_o), states, U_o), contexts, C_o));
    }
};

template <class Attention, class Matrix, class Vector, class Cell>
decoder(Attention, Matrix, Cell, Matrix, Matrix, Vector, Matrix, Matrix, Matrix, Vector, Matrix, Vector)
    -> decoder<Attention, Matrix, Vector, Cell>;

/// A new decoder around an attention whose contexts have `context` dimensions. `recurrent`: as for nn::make_gru.
/// `cells`: nn::new_gru or nn::new_lstm.
template <class T, class Attention, class Cells = nn::new_gru>
auto make_decoder(random_source& random, Attention attention, std::size_t vocabulary, std::size_t embedding,
                  std::size_t hidden, std::size_t context, nn::initializer<T> recurrent = nullptr,
                  const Cells& cells = {})
{
    auto table = nn::gaussian<T>(random, vocabulary, embedding, 0.1);
    auto cell = cells.template make<T>(random, embedding, hidden, recurrent);
    const std::size_t gates = shape_of(cell.b)[0];
    return decoder{std::move(attention),
                   std::move(table),
                   std::move(cell),
                   nn::glorot<T>(random, context, gates),
                   nn::glorot<T>(random, hidden, hidden),
                   nn::zeros<T>(hidden),
                   nn::glorot<T>(random, hidden, 2 * embedding),
                   nn::glorot<T>(random, embedding, 2 * embedding),
                   nn::glorot<T>(random, context, 2 * embedding),
                   nn::zeros<T>(2 * embedding),
                   nn::glorot<T>(random, embedding, vocabulary),
                   nn::zeros<T>(vocabulary)};
}

}  // namespace heed::seq2seq
