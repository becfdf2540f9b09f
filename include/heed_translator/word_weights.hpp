// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heed_kit/text/unknown_words.hpp>
#include <heed_kit/text/vocabulary.hpp>

#include <heed_translator/language.hpp>

/// Attention weights between words, for models whose tokens may be subwords.
namespace heed::translator {

/// [rows][columns · depth]: a row per output position, with `depth` numbers per input position.
using weight_rows = std::vector<std::vector<float>>;

/// Converts weights between tokens to weights between words: weights are summed over the subwords of a source word, so
/// that each row keeps its sum, and averaged over the subwords of a target word.
inline weight_rows between_words(const weight_rows& between_tokens, const word_tokens& target,
                                 const word_tokens& source, std::size_t depth = 1)
{
    weight_rows result;
    for (const auto& rows : target) {
        std::vector<float>& to = result.emplace_back(source.size() * depth);
        const float part = 1.0f / static_cast<float>(rows.size());
        for (const std::size_t row : rows) {
            for (std::size_t i = 0; i < source.size(); ++i) {
                for (const std::size_t position : source[i]) {
                    const float* const from = between_tokens[row].data() + position * depth;
                    for (std::size_t d = 0; d < depth; ++d) to[i * depth + d] += part * from[d];
                }
            }
        }
    }
    return result;
}

/// As above, from the weights of a model, whose columns are the source tokens and the end word. `with_end`: include a
/// row for the end word of the translation.
inline weight_rows between_words(const language& source_side, const sentence& source, const weight_rows& given,
                                 word_tokens target, bool with_end, std::size_t depth = 1)
{
    if (with_end) target.push_back({given.size() - 1});
    return between_words(given, target, source_side.tokens_of_words(source), depth);
}

/// Replaces unknown words with the source word of the largest weight, or with its translation if given. A word is
/// unknown if one of its subwords is.
inline void replace_unknown(const language& source_side, const sentence& source, const weight_rows& weights,
                            const std::unordered_map<std::string, std::string>& meanings, reading& read)
{
    if (std::find(read.unknown.begin(), read.unknown.end(), true) == read.unknown.end()) return;
    const auto rows = between_words(source_side, source, weights, read.tokens, false);
    const std::string mark(heed::text::vocabulary::special_words[heed::text::vocabulary::unk]);
    const sentence words = source_side.shown(source);
    for (std::size_t j = 0; j < read.words.size(); ++j) {
        if (!read.unknown[j]) continue;
        read.words[j] = heed::text::replace_unknown<float>({mark}, words, {rows[j]}, meanings, mark).front();
    }
}

}  // namespace heed::translator
