// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <heed/seq2seq/translator.hpp>

namespace heed::inline HEED_TARGET::papers::bahdanau2015 {

/// RNNsearch: Bahdanau et al. 2015, §3 and appendix A. Sizes of the paper: embedding 620, hidden 1000, alignment 1000,
/// readout 500. With nn::orthogonal<T> as `recurrent`, the recurrent weights are drawn as in appendix B.1.
///
///     auto model = papers::bahdanau2015::translator<float>(seed, sizes);
template <class T, class Attention = seq2seq::attentions::additive_factory, class Parts = seq2seq::parts<>>
auto translator(std::uint64_t seed, const seq2seq::sizes& n, const Attention& attention = {}, const Parts& with = {},
                nn::initializer<T> recurrent = nullptr)
{
    return seq2seq::make_translator<T>(seed, n, attention, with, recurrent);
}

}  // namespace heed::inline HEED_TARGET::papers::bahdanau2015
