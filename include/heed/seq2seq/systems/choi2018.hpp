// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <heed/seq2seq/translator.hpp>

namespace heed::inline HEED_TARGET::papers::choi2018 {

/// The parts of the paper's baseline: RNNsearch with LSTM on both sides, and softmax(W z + c) as output.
inline auto parts()
{
    return seq2seq::parts{}.with_cells(nn::lstm_factory{}).with_readout(seq2seq::output::linear_factory{});
}

/// The parts with contextualized embeddings, "+C".
inline auto parts_with_context()
{
    return choi2018::parts().with_embeddings(seq2seq::embedding::contextual_source_factory{},
                                             seq2seq::embedding::contextual_target_factory{});
}

/// The systems of Choi et al. 2018, table 1. Sizes of the paper: embedding 620, hidden 1000, alignment 2000.
///
///     Baseline    translator<T>(seed, n, seq2seq::attentions::additive_factory{})
///     +AttY       translator<T>(seed, n, seq2seq::attentions::additive_with_word_factory{})
///     +AttY2D     translator<T>(seed, n)
///     +C …        translator<T>(seed, n, …, choi2018::parts_with_context())
template <class T, class Attention = seq2seq::attentions::per_dimension_factory,
          class Parts = decltype(choi2018::parts())>
auto translator(std::uint64_t seed, const seq2seq::sizes& n, const Attention& attention = {},
                const Parts& with = choi2018::parts(), nn::initializer<T> recurrent = nullptr)
{
    return seq2seq::make_translator<T>(seed, n, attention, with, recurrent);
}

}  // namespace heed::inline HEED_TARGET::papers::choi2018
