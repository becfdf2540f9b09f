// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/masks.hpp>
#include <heed/seq2seq/model.hpp>
#include <heed/seq2seq/parts.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

namespace detail {

/// Whether this attention's query must include the embedding of the previous word.
template <class Attention>
inline constexpr bool reads_embedding = false;
template <class Attention>
    requires requires(const Attention& attention) { attention.score; }
inline constexpr bool reads_embedding<Attention> =
    score::over::reads_word<std::remove_cvref_t<decltype(std::declval<const Attention&>().score)>>();

/// Does this attention's score project the words of all steps at once?
template <class Attention, class Words>
inline constexpr bool projects_words = false;
template <class Attention, class Words>
    requires requires(const Attention& attention) { attention.score; }
inline constexpr bool projects_words<Attention, Words> =
    score::over::projects_words<std::remove_cvref_t<decltype(std::declval<const Attention&>().score)>, Words>();

template <class Attention, class Words>
inline constexpr bool reads_words = reads_embedding<Attention> || projects_words<Attention, Words>;

/// The words y of all steps in the form that the score reads: y itself, Y y, or nothing.
template <class Attention, class Words>
auto words_for(const Attention& attention, const Words& y)
{
    if constexpr (reads_embedding<Attention>) {
        return y;
    } else if constexpr (projects_words<Attention, Words>) {
        return attention.score.project_words(y);
    } else {
        return nothing{};
    }
}

/// The query that consists of a state and such words.
template <class Attention>
auto query_of(const tensor auto& s, const auto& words)
{
    if constexpr (!tensor<decltype(words)>) {
        return s;
    } else if constexpr (reads_embedding<Attention>) {
        return state_and_word{s, words};
    } else {
        return state_and_projected_word{s, words};
    }
}

}  // namespace detail

/// No attention: the whole source sentence as one vector, the same at every step.
///
///     c = h_T                                 RNNencdec, Cho et al. 2014
///
/// With `forward_encoder` it is h_T, as in the paper; with `bidirectional_encoder` it is [→h_T; ←h_1], as in no paper.
struct fixed_context {
    template <class Summary>
    struct source_vector {
        Summary summary;  // [B,D]

        source_vector rows(std::span<const std::size_t> which) const { return {ops::rows_of(summary, which)}; }
    };

    /// The sentence's vector, [B,D].
    auto on(const auto& source, const lengths&) const
    {
        return source_vector<std::remove_cvref_t<decltype(source.whole)>>{source.whole};
    }

    attention_state<no_state> start(const auto&) const { return {}; }

    auto read(const auto& memory, const auto&, const attention_state<no_state>& state) const  // the same at every step
    {
        return context_result<decltype(memory.summary), attention_state<no_state>>{memory.summary,
                                                                                   {{}, state.step + 1}};
    }

    static auto parameters(auto&, auto&&) { return fixed_context{}; }
};

/// An attention with score::with_coverage that looks up initial coverage embeddings of the source words.
///
///     c_{0,j} = table[x_j]                    Mi et al. 2016; Sankaran et al. 2016, §4.1
template <class Attention, class Matrix>
struct coverage_of_words : Attention {
    Matrix table;  // [V,N] of the source vocabulary

    /// The state before the first step, for the source words [T,B].
    auto start_for(const auto& memory, const word_ids& words) const
    {
        return this->start(memory, this->score.start_from(memory, ops::swap_axes(ops::lookup(table, words))));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto attention = Attention::parameters(self, visit);
        return seq2seq::coverage_of_words{std::move(attention), visit("table", self.table)};
    }
};
template <class Attention, class Matrix>
coverage_of_words(Attention, Matrix) -> coverage_of_words<Attention, Matrix>;

/// The state of a recurrent decoder between words, for each row.
template <class Cell, class Attention, class InputFeeding = nothing, class Mask = nothing>
struct decoder_state {
    Cell cell;                                            // of the recurrent cell; its output [B,H] is s_i
    Attention attention;                                  // the state of the attention
    HEED_NO_UNIQUE_ADDRESS InputFeeding input_feeding{};  // [B,L] the previous readout, with input feeding
    HEED_NO_UNIQUE_ADDRESS Mask mask{};                   // [B,E] of contextual embeddings; the same at every step

    auto map(const auto& f) const
    {
        return seq2seq::decoder_state{nn::map_state(cell, f), attention.map(f), nn::map_state(input_feeding, f),
                                      nn::map_state(mask, f)};
    }
};
template <class Cell, class Attention, class InputFeeding = nothing, class Mask = nothing>
decoder_state(Cell, Attention, InputFeeding = {}, Mask = {}) -> decoder_state<Cell, Attention, InputFeeding, Mask>;

/// A recurrent decoder that attends to the source at every word. Its parts are policies:
///
///     attention    any, including `fixed_context` (no attention)
///     embedding    a matrix, or embedding.hpp: words that depend on the source sentence
///     cell         f: nn::gru, nn::lstm, nn::stacked
///     asks         query_from (parts.hpp): which state is the query, and where the context goes
///     start        initial_state: s_0
///     readout      output: from s_i, y_{i-1} and c_i to the last layer
///
/// The decoder of RNNsearch, made by make_decoder:
///
///     s_0 = tanh(W_s ←h_1 + b_s)                        initial_state::tanh_layer
///     c_i = attention(s_{i-1}, h)                       query_from::previous_state
///     s_i = GRU(s_{i-1}, [E y_{i-1}; c_i])
///     t_i = maxout(U_o s_i + V_o E y_{i-1} + C_o c_i + b_o)           output::maxout
///     p(y_i) = softmax(W_o t_i + b)           Bahdanau et al. 2015, §3.1 and appendix A.2.2
///
/// For an LSTM, s_i is the output. A score that reads the previous word (its trait `reads_word`) gets E y_{i-1}.
template <class Attention, class Embedding, class Cell, class Asks, class Start, class Readout>
struct decoder {
    Attention attention;
    Embedding embedding;  // [V,E], or a type of namespace embedding
    Cell cell;            // from E y
    Asks asks;
    Start start;
    Readout readout;

    /// The attention's memory of the source, and the state before the first word.
    auto open(const auto& source, const lengths& real) const
    {
        auto memory = [&] {
            if constexpr (requires { attention.on(source, real); }) {
                return attention.on(source, real);
            } else {
                return attention.on(source.annotations, real);
            }
        }();
        auto first = start(cell, source);
        auto remembered = [&] {
            if constexpr (requires { attention.start_for(memory, source.words); }) {
                return attention.start_for(memory, source.words);
            } else {
                return attention.start(memory);
            }
        }();
        auto input_feeding = [&] {  // t_0 = 0
            const auto& s = nn::output_of(first);
            if constexpr (feeds_input) {
                return constant_like(s, shape_of_rank<2>{shape_of(s)[0], shape_of(readout.F)[0]}, 0.0);
            } else {
                return nothing{};
            }
        }();
        decoder_state state{std::move(first), std::move(remembered), std::move(input_feeding), mask_for(source)};
        return opening{std::move(memory), std::move(state)};
    }

    /// Σ −log p(y_i) over the batch (teacher forcing). `only`: restricts the vocabulary to these words
    /// (candidate_lists), ascending and including the words of the references.
    template <class T>
    auto loss(const auto& source, const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {},
              const std::vector<std::uint32_t>* only = nullptr) const
    {
        return detail::cross_entropy(readouts(source, batch, drop), output(), batch.targets, smoothing, only);
    }

    /// The input of the output layer at every step of the batch (teacher forcing): [S,B,L].
    template <class T>
    auto readouts(const auto& source, const training_batch<T>& batch, const nn::dropout& drop = {}) const
    {
        const auto begun = open(source, batch.source.real);
        const auto context_alone = [&](const auto& asked, const auto& remembered) {
            return attention.read(begun.memory, asked, remembered);
        };
        return teacher_force(begun.state, batch, drop, context_alone, [](const auto&) {}).first;
    }

    /// Like loss, but returns a `teacher_forced`: the cost of each word, the weights of all steps, and the attention's
    /// last state.
    template <class T>
    auto follow(const auto& source, const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {},
                const std::vector<std::uint32_t>* only = nullptr) const
    {
        const auto begun = open(source, batch.source.real);
        const auto weights_too = [&](const auto& asked, const auto& remembered) {
            return answer(begun.memory, asked, remembered);
        };
        std::vector<std::remove_cvref_t<decltype(nn::output_of(begun.state.cell))>> weights;  // [B,T] each
        auto led = teacher_force(begun.state, batch, drop, weights_too, [&](const auto& each) {
            static_assert(
                requires { each.weights; },
                "heed: this attention has no weights, so a loss cannot read them; use decoder::loss");
            weights.push_back(detail::weights_per_position<Attention>(each.weights));
        });
        return teacher_forced{detail::cross_entropy_per_word(led.first, output(), batch.targets, smoothing, only),
                              std::move(weights), std::move(led.second)};
    }

    auto advance(const auto& memory, const auto& state, const word_ids& previous) const
    {
        const auto y = words_of(previous, state.mask);  // [1,B,E]
        const auto words = detail::words_for(attention, y);
        const auto attend = [&](const auto& s) { return answer(memory, query(s, words, 0), state.attention); };
        auto next =
            asks(cell, with_input_feeding(ops::block(nn::project_of(cell, y), std::size_t{0}), state.input_feeding),
                 state.cell, {}, attend);
        auto t = readout.read(ops::stack(std::vector{nn::output_of(next.state)}), y,
                              ops::stack(std::vector{next.seen.context}));  // [1,B,L]
        auto input_feeding = [&] {
            if constexpr (feeds_input) {
                return ops::block(t, std::size_t{0});
            } else {
                return nothing{};
            }
        }();
        decoder_state after{std::move(next.state), next.seen.state, std::move(input_feeding), state.mask};
        return advanced{std::move(t), std::move(after), std::move(next.seen)};
    }

    /// The last layer, from the readout policy.
    auto output() const
    {
        const auto of = [](const auto& last) {
            return output_layer<decltype((last.W_o)), decltype((last.b))>{last.W_o, last.b};
        };
        if constexpr (feeds_input) {
            return of(readout.of);
        } else {
            return of(readout);
        }
    }

    /// The attention's result if the query is the previous state.
    auto attend(const auto& memory, const auto& state, const word_ids& previous) const
    {
        const auto& s = nn::output_of(state.cell);
        if constexpr (detail::reads_words<Attention, Embedding>) {
            const auto y = words_of(previous, state.mask);  // [1,B,E]
            return answer(memory, query(s, detail::words_for(attention, y), 0), state.attention);
        } else {
            return answer(memory, s, state.attention);
        }
    }

    static constexpr bool feeds_input = requires(const Readout& r) { r.F; };  // is there input feeding?

    static auto parameters(auto& self, auto&& visit)
    {
        // The policies' parameters are listed as the decoder's own: decoder.C, decoder.W_s, decoder.U_o.
        return seq2seq::decoder{visit("attention", self.attention),
                                visit("embedding", self.embedding),
                                visit("cell", self.cell),
                                Asks::parameters(self.asks, visit),
                                Start::parameters(self.start, visit),
                                Readout::parameters(self.readout, visit)};
    }

private:
    /// All steps, each with the true previous word: the readout [S,B,L] and the attention's last state.
    /// answer_to(query, state) returns the attention's result; keep(result) is called for each.
    auto teacher_force(auto state, const auto& batch, const nn::dropout& drop, const auto& answer_to,
                       const auto& keep) const
    {
        const auto y =
            ops::clear_ended(drop.time_major(words_of(batch.previous, state.mask)), batch.target_lengths());  // [S,B,E]
        const auto inputs = nn::project_of(cell, y);                                                          // [S,B,G]
        const auto words = detail::words_for(attention, y);
        using row = std::remove_cvref_t<decltype(nn::output_of(state.cell))>;
        std::vector<row> states, contexts, readouts;
        for (std::size_t i = 0; i < batch.previous.steps; ++i) {
            const auto attend = [&](const auto& s) { return answer_to(query(s, words, i), state.attention); };
            auto next =
                asks(cell, with_input_feeding(ops::block(inputs, i), state.input_feeding), state.cell, drop, attend);
            keep(next.seen);
            state.cell = std::move(next.state);
            state.attention = std::move(next.seen.state);
            if constexpr (feeds_input) {
                state.input_feeding =
                    drop(readout.read(nn::output_of(state.cell), ops::block(y, i), next.seen.context));
                readouts.push_back(state.input_feeding);
            } else {
                states.push_back(nn::output_of(state.cell));
                contexts.push_back(std::move(next.seen.context));
            }
        }
        if constexpr (feeds_input) {
            return std::pair(ops::stack(readouts), std::move(state.attention));
        } else {
            return std::pair(drop.time_major(readout.read(ops::stack(states), y, ops::stack(contexts))),
                             std::move(state.attention));
        }
    }

    auto words_of(const word_ids& ids, const auto& mask) const
    {
        if constexpr (tensor<Embedding>) {
            return ops::lookup(embedding, ids);
        } else {
            return embedding.look_up(ids, mask);
        }
    }

    auto mask_for(const auto& source) const
    {
        if constexpr (tensor<Embedding>) {
            return nothing{};
        } else {
            static_assert(!std::is_same_v<std::remove_cvref_t<decltype(source.context)>, nothing>,
                          "heed: embedding::contextual_target needs the context of an encoder whose embedding is an "
                          "embedding::contextual_source");
            return embedding.gate.of(source.context);
        }
    }

    static auto query(const tensor auto& s, const auto& words, std::size_t i)
    {
        if constexpr (tensor<decltype(words)>) {
            return detail::query_of<Attention>(s, ops::block(words, i));
        } else {
            return s;
        }
    }

    auto answer(const auto& memory, const auto& asked, const auto& remembered) const
    {
        if constexpr (requires { attention.step(memory, asked, remembered); }) {
            return attention.step(memory, asked, remembered);
        } else {
            return attention.read(memory, asked, remembered);
        }
    }

    /// The cell's input from the word [B,G] and, with input feeding, from the previous readout.
    auto with_input_feeding(const tensor auto& input, const auto& input_feeding) const
    {
        if constexpr (feeds_input) {
            return ops::addmm(input, input_feeding, readout.F);
        } else {
            return input;
        }
    }
};
template <class Attention, class Embedding, class Cell, class Asks, class Start, class Readout>
decoder(Attention, Embedding, Cell, Asks, Start, Readout) -> decoder<Attention, Embedding, Cell, Asks, Start, Readout>;

/// A new decoder with an attention that returns contexts of `context` dimensions.
template <class T, class Attention, class... Part>
auto make_decoder(nn::initializers<T> init, Attention attention, decoder_sizes n, const parts<Part...>& with)
{
    auto words = nn::make_part(with.target_words, init, embedding::embedding_sizes{n.vocabulary, n.embedding});
    auto cell = nn::make_part(with.cells, init, nn::cell_sizes{n.embedding, n.hidden});
    n.gates = shape_of(nn::biases_of(cell))[0];
    const decoder_parts sizes{n, with.cells};
    return decoder{std::move(attention),
                   std::move(words),
                   std::move(cell),
                   nn::make_part(with.asks, init, sizes),
                   nn::make_part(with.start, init, sizes),
                   nn::make_part(with.readout, init, sizes)};
}

}  // namespace heed::inline HEED_TARGET::seq2seq
