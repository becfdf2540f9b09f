// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include <heed/nn/dropout.hpp>
#include <heed/nn/gru.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/seq2seq/batch.hpp>

namespace heed::seq2seq {

/// What an encoder says of a batch of source sentences.
template <class Annotations, class Final>
struct encoded {
    Annotations annotations;  // [B,T,2H]; anything in the padding
    Final forward;            // [B,H] the forward state after the last word
    Final backward;           // [B,H] the backward state after the first word
};

/// The bidirectional encoder of RNNsearch: an annotation tells of the word it stands at and of what surrounds it.
///
///     →h_t = →GRU(→h_{t-1}, E x_t),  ←h_t = ←GRU(←h_{t+1}, E x_t),  h_t = [→h_t; ←h_t]
///                                             Bahdanau et al. 2015, §3.2 · SPEC E1, E2, E5; E3 for Start
///
/// A sentence's backward state starts at its own last word, whatever the padding behind it.
template <class Matrix, class Gru, class Start>
struct bidirectional_encoder {
    Matrix embedding;  // [V,E]
    Gru forward;
    Gru backward;
    Start forward_start;
    Start backward_start;

    auto encode(const source_batch& source, const nn::dropout& drop = {}) const
    {
        const std::size_t T = source.words.steps, B = source.words.batch;
        source.real.require("bidirectional_encoder::encode", B, T);
        const auto x = drop(ops::lookup(embedding, source.words));  // [T,B,E]
        const auto forwards = run(forward, forward_start, x, source.real, false);
        const auto backwards = run(backward, backward_start, x, source.real, true);
        const auto both = drop(ops::concat(ops::stack(forwards), ops::stack(backwards)));  // [T,B,2H]
        auto annotations = ops::swap_axes(both);                                           // [B,T,2H]
        return encoded<decltype(annotations), std::remove_cvref_t<decltype(forwards[0])>>{
            std::move(annotations), forwards.back(), backwards[0]};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::bidirectional_encoder{
            visit("embedding", self.embedding), visit("forward", self.forward), visit("backward", self.backward),
            visit("forward_start", self.forward_start), visit("backward_start", self.backward_start)};
    }

private:
    /// The states after each word, in the order of the words: T of [B,H].
    static auto run(const Gru& cell, const Start& start, const tensor auto& x, const lengths& real, bool reversed)
    {
        const auto inputs = cell.project(x);  // [T,B,3H]
        const std::size_t T = shape_of(x)[0];
        auto h = start.state(shape_of(x)[1], x);
        using state = decltype(cell.step(ops::block(inputs, std::size_t{0}), h, ops::sentence_ends{}));
        std::vector<state> states(T);
        for (std::size_t i = 0; i < T; ++i) {
            const std::size_t t = reversed ? T - 1 - i : i;
            states[t] = i == 0 ? cell.step(ops::block(inputs, t), h, {&real, t})
                               : cell.step(ops::block(inputs, t), states[reversed ? t + 1 : t - 1], {&real, t});
        }
        return states;
    }
};

template <class Matrix, class Gru, class Start>
bidirectional_encoder(Matrix, Gru, Gru, Start, Start) -> bidirectional_encoder<Matrix, Gru, Start>;

/// A new encoder with trained initial states.
template <class T>
auto make_bidirectional_encoder(random_source& random, std::size_t vocabulary, std::size_t embedding,
                                std::size_t hidden)
{
    return bidirectional_encoder{nn::gaussian<T>(random, vocabulary, embedding, 0.1),
                                 nn::make_gru<T>(random, embedding, hidden), nn::make_gru<T>(random, embedding, hidden),
                                 nn::trained_start{nn::zeros<T>(hidden)}, nn::trained_start{nn::zeros<T>(hidden)}};
}

}  // namespace heed::seq2seq
