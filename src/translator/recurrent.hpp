// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/seq2seq/translator.hpp>

#include <heed_translator/options.hpp>

namespace heed::translator {

/// The sizes of a recurrent system.
inline heed::seq2seq::sizes recurrent_sizes(const options& how, std::size_t source_words, std::size_t target_words)
{
    heed::seq2seq::sizes n;
    n.source_vocabulary = source_words;
    n.target_vocabulary = target_words;
    n.embedding = how.embedding;
    n.hidden = how.hidden;
    n.alignment = how.alignment;
    return n;
}

}  // namespace heed::translator
