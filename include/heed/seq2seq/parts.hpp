// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/nn/cells.hpp>
#include <heed/seq2seq/asks_with.hpp>
#include <heed/seq2seq/embeds.hpp>
#include <heed/seq2seq/encoder.hpp>
#include <heed/seq2seq/outputs.hpp>
#include <heed/seq2seq/starts_with.hpp>

namespace heed::seq2seq {

/// How the parts of a recurrent system around its attention are made; the defaults are RNNsearch's. The functions
/// return the same with one part replaced:
///
///     parts{}.with_cells(nn::new_lstm{}).with_readout(output::new_linear{})
template <class Encoder = new_bidirectional, class Cells = nn::new_gru, class Embeddings = embeds::new_plain,
          class Asks = asks_with::new_previous_state, class Start = starts_with::new_tanh_layer,
          class Readout = output::new_maxout>
struct parts {
    Encoder encoder{};        // new_bidirectional, new_forward
    Cells cells{};            // nn::new_gru, new_lstm, new_stacked: of encoder and decoder
    Embeddings embeddings{};  // embeds::new_plain, new_contextual: of encoder and decoder
    Asks asks{};              // asks_with::new_previous_state, new_intermediate_state, new_current_state
    Start start{};            // starts_with::new_tanh_layer, new_last_state
    Readout readout{};        // output::new_maxout, new_linear, new_two_layers, new_attentional, new_fed

    /// The same parts with another encoder.
    template <class Other>
    parts<Other, Cells, Embeddings, Asks, Start, Readout> with_encoder(const Other& other) const
    {
        return {other, cells, embeddings, asks, start, readout};
    }
    template <class Other>
    parts<Encoder, Other, Embeddings, Asks, Start, Readout> with_cells(const Other& other) const
    {
        return {encoder, other, embeddings, asks, start, readout};
    }
    /// The same parts with other embeddings.
    template <class Other>
    parts<Encoder, Cells, Other, Asks, Start, Readout> with_embeddings(const Other& other) const
    {
        return {encoder, cells, other, asks, start, readout};
    }
    /// The same parts with another state that asks.
    template <class Other>
    parts<Encoder, Cells, Embeddings, Other, Start, Readout> with_asks(const Other& other) const
    {
        return {encoder, cells, embeddings, other, start, readout};
    }
    /// The same parts with another first state.
    template <class Other>
    parts<Encoder, Cells, Embeddings, Asks, Other, Readout> with_start(const Other& other) const
    {
        return {encoder, cells, embeddings, asks, other, readout};
    }
    template <class Other>
    parts<Encoder, Cells, Embeddings, Asks, Start, Other> with_readout(const Other& other) const
    {
        return {encoder, cells, embeddings, asks, start, other};
    }
};

}  // namespace heed::seq2seq
