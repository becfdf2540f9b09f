// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include <heed/nn/cells.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/parts.hpp>
#include <heed/seq2seq/batch.hpp>

namespace heed::seq2seq {

/// The encoding of a batch of source sentences.
template <class Annotations, class Start, class Whole>
struct encoded {
    Annotations annotations;  // [B,T,D]; undefined in the padding
    Start start;              // [B,H] what the decoder's first state is made from
    Whole whole;              // [B,D] the sentence in one vector
};

namespace detail {

/// E x_t, with zeros in the padding: the recurrent layers' products never read the padding's embedding.
auto words_of(const tensor auto& embedding, const source_batch& source, const nn::dropout& drop)
{
    return ops::clear_ended(drop(ops::lookup(embedding, source.words)), source.real);  // [T,B,E]
}

enum class direction { forward, backward };

/// The outputs of a recurrent layer after each word, in word order: T of [B,H].
auto run_layer(const auto& cell, const auto& start, const tensor auto& x, const lengths& real, direction reads)
{
    const bool reversed = reads == direction::backward;
    const auto inputs = cell.project(x);  // [T,B,G]
    const std::size_t T = shape_of(x)[0];
    const auto step = [&](std::size_t i, const auto& state) {
        const std::size_t t = reversed ? T - 1 - i : i;
        return cell.step(ops::block(inputs, t), state, {&real, t});
    };
    auto state = step(0, cell.begin(start.state(shape_of(x)[1], x)));
    std::vector<std::remove_cvref_t<decltype(nn::output_of(state))>> outputs(T);
    for (std::size_t i = 0; i < T; ++i) {
        if (i > 0) state = step(i, state);
        outputs[reversed ? T - 1 - i : i] = nn::output_of(state);
    }
    return outputs;
}

}  // namespace detail

/// The bidirectional encoder of RNNsearch: an annotation describes a word and its surroundings.
///
///     →h_t = →GRU(→h_{t-1}, E x_t),  ←h_t = ←GRU(←h_{t+1}, E x_t),  h_t = [→h_t; ←h_t]
///                                             Bahdanau et al. 2015, §3.2
///
/// Any cell fits in the GRU's place (nn/cells.hpp); of an LSTM h_t are the outputs. The backward pass starts at each
/// sentence's own last word, regardless of padding.
template <class Matrix, class Cell, class Start>
struct bidirectional_encoder {
    Matrix embedding;  // [V,E]
    Cell forward;
    Cell backward;
    Start forward_start;
    Start backward_start;

    auto encode(const source_batch& source, const nn::dropout& drop = {}) const
    {
        const std::size_t T = source.words.steps, B = source.words.batch;
        source.real.require("bidirectional_encoder::encode", B, T);
        const auto x = detail::words_of(embedding, source, drop);  // [T,B,E]
        const auto forwards = detail::run_layer(forward, forward_start, x, source.real, detail::direction::forward);
        const auto backwards = detail::run_layer(backward, backward_start, x, source.real, detail::direction::backward);
        const auto both = drop(ops::concat(ops::stack(forwards), ops::stack(backwards)));  // [T,B,2H]
        auto annotations = ops::swap_axes(both);                                           // [B,T,2H]
        auto whole = ops::concat(forwards.back(), backwards.front());                      // [B,2H]
        using state = std::remove_cvref_t<decltype(backwards.front())>;
        return encoded<decltype(annotations), state, decltype(whole)>{std::move(annotations), backwards.front(),
                                                                      std::move(whole)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::bidirectional_encoder{
            visit("embedding", self.embedding), visit("forward", self.forward), visit("backward", self.backward),
            visit("forward_start", self.forward_start), visit("backward_start", self.backward_start)};
    }
};

template <class Matrix, class Cell, class Start>
bidirectional_encoder(Matrix, Cell, Cell, Start, Start) -> bidirectional_encoder<Matrix, Cell, Start>;

/// The encoder of RNNencdec: it reads the sentence once, and its last state must represent the whole of it.
///
///     h_t = GRU(h_{t-1}, E x_t),  the sentence is h_T           Cho et al. 2014, §2.2
template <class Matrix, class Cell, class Start>
struct forward_encoder {
    Matrix embedding;  // [V,E]
    Cell cell;
    Start start;

    auto encode(const source_batch& source, const nn::dropout& drop = {}) const
    {
        source.real.require("forward_encoder::encode", source.words.batch, source.words.steps);
        const auto x = detail::words_of(embedding, source, drop);  // [T,B,E]
        const auto states = detail::run_layer(cell, start, x, source.real, detail::direction::forward);
        auto annotations = ops::swap_axes(drop(ops::stack(states)));  // [B,T,H]
        using state = std::remove_cvref_t<decltype(states.back())>;
        return encoded<decltype(annotations), state, state>{std::move(annotations), states.back(), states.back()};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::forward_encoder{visit("embedding", self.embedding), visit("cell", self.cell),
                                        visit("start", self.start)};
    }
};

template <class Matrix, class Cell, class Start>
forward_encoder(Matrix, Cell, Start) -> forward_encoder<Matrix, Cell, Start>;

/// A new encoder with a trained initial state. `recurrent`: as for nn::make_gru. `cells`: nn::new_gru or nn::new_lstm.
template <class T, class Cells = nn::new_gru>
auto make_forward_encoder(random_source& random, std::size_t vocabulary, std::size_t embedding, std::size_t hidden,
                          nn::initializer<T> recurrent = nullptr, const Cells& cells = {})
{
    auto table = nn::gaussian<T>(random, vocabulary, embedding, 0.1);
    auto cell = cells.template make<T>(random, embedding, hidden, recurrent);
    return forward_encoder{std::move(table), std::move(cell), nn::trained_start{nn::zeros<T>(hidden)}};
}

/// A new encoder with trained initial states. `recurrent`: as for nn::make_gru. `cells`: nn::new_gru or nn::new_lstm.
template <class T, class Cells = nn::new_gru>
auto make_bidirectional_encoder(random_source& random, std::size_t vocabulary, std::size_t embedding,
                                std::size_t hidden, nn::initializer<T> recurrent = nullptr, const Cells& cells = {})
{
    auto table = nn::gaussian<T>(random, vocabulary, embedding, 0.1);
    auto forward = cells.template make<T>(random, embedding, hidden, recurrent);
    auto backward = cells.template make<T>(random, embedding, hidden, recurrent);
    return bidirectional_encoder{std::move(table), std::move(forward), std::move(backward),
                                 nn::trained_start{nn::zeros<T>(hidden)}, nn::trained_start{nn::zeros<T>(hidden)}};
}

}  // namespace heed::seq2seq
