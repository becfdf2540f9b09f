// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <heed/seq2seq/batch.hpp>

namespace heed::seq2seq {

/// The maximum number of words of a translation: factor · source words + extra. The source's end word counts, the
/// translation's does not. At the limit only the end word is allowed.
struct length_limit {
    double factor = 2;
    std::size_t extra = 10;

    std::size_t words(std::size_t source_words) const
    {
        return static_cast<std::size_t>(factor * static_cast<double>(source_words)) + extra;
    }
};

/// A translation and the attention weights of each of its words.
template <class T>
struct translation {
    id_sentence words;  // without the end word
    std::vector<std::vector<T>>
        weights;  // [words + 1][source words + 1]; the last of each is the end word. Empty without attention
    double log_probability = 0;  // log p(words, end word | source), in nats
    double score = 0;            // what the search ranks by
};

}  // namespace heed::seq2seq
