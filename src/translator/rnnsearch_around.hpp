// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/nn/cells.hpp>
#include <heed/seq2seq/translator.hpp>

#include "recurrent.hpp"
#include "rnnsearch.hpp"
#include "system_of.hpp"

namespace heed::translator::detail {

/// A new RNNsearch around the attention that make_attention(random, sizes) returns.
template <class Cells = heed::nn::new_gru>
std::unique_ptr<system> make_rnnsearch_around(const auto& make_attention, const options& how, std::size_t source_words,
                                              std::size_t target_words, const Cells& cells = {})
{
    const auto n = recurrent_sizes(how, source_words, target_words);
    return make_system_of(heed::seq2seq::make_translator<float>(how.seed, n, make_attention,
                                                                heed::nn::initializer<float>(nullptr), cells),
                          how);
}

}  // namespace heed::translator::detail
