// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed_kit/text/sentence.hpp>

namespace heed::inline HEED_TARGET::text {

/// Replaces the unknown words of a translation: each becomes the dictionary's translation of the source word with the
/// largest weight at that step or, if there is none, the source word itself (a name, a number). Jean et al. 2015, §3.3
///
/// `weights` [target words, or more][source words, or more]: the attention weights of each target word; those of the
/// end words are ignored. The first of equal weights counts. If the source has no words, the unknown word is kept.
/// Throws heed::error if an unknown word lacks weights.
template <class T>
sentence replace_unknown(const sentence& target, const sentence& source, const std::vector<std::vector<T>>& weights,
                         const std::unordered_map<std::string, std::string>& dictionary = {},
                         std::string_view unknown = "<unk>")
{
    sentence result = target;
    for (std::size_t j = 0; j < target.size(); ++j) {
        if (target[j] != unknown || source.empty()) continue;
        if (j >= weights.size() || weights[j].size() < source.size()) {
            throw error("replace_unknown: target word " + std::to_string(j) +
                        " is unknown, but there are weights for " +
                        std::to_string(j < weights.size() ? weights[j].size() : 0) + " of " +
                        counted(source.size(), "source word") + "; search with weights");
        }
        const auto begin = weights[j].begin();
        const auto at = std::max_element(begin, begin + static_cast<std::ptrdiff_t>(source.size())) - begin;
        const std::string& word = source[static_cast<std::size_t>(at)];
        const auto found = dictionary.find(word);
        result[j] = found == dictionary.end() ? word : found->second;
    }
    return result;
}

}  // namespace heed::inline HEED_TARGET::text
