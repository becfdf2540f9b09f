// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rnnsearch_around.hpp"

namespace heed::translator::detail {

/// A new RNNsearch with the attention that the options name. `cells`: heed::nn::new_gru or new_lstm.
template <class Cells>
std::unique_ptr<system> make_rnnsearch_of(const Cells& cells, const options& how, std::size_t source_words,
                                          std::size_t target_words)
{
    namespace attentions = heed::seq2seq::attentions;
    const auto with = [&](const auto& attention) {
        return make_rnnsearch_around(attention, how, source_words, target_words, cells);
    };
    if (how.attention == "none") return with(attentions::none<float>{});
    if (how.attention == "additive-y") return with(attentions::additive_with_word<float>{});
    if (how.attention == "per-dimension") return with(attentions::per_dimension<float>{});
    if (how.attention == "temporal") return with(attentions::temporal<float>{});
    return with(attentions::additive<float>{});
}

}  // namespace heed::translator::detail
