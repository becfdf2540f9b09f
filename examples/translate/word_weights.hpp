// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heed/text/unknown_words.hpp>
#include <heed/text/vocabulary.hpp>
#include <heed/view/page.hpp>

#include "language.hpp"
#include "model_file.hpp"

/// Attention weights between words, for models whose tokens may be pieces of words.
namespace translation {

/// [rows][columns · depth]: a row per output position, `depth` numbers per input position.
using weight_rows = std::vector<std::vector<float>>;

/// Weights between words from those between tokens: the weights of a source word's pieces are added, so that each row
/// keeps its sum; the rows of a target word's pieces are averaged.
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

/// The same from a model's weights: in its own order of the source, with the source's end word last. `with_end`:
/// include a row for the translation's end word.
inline weight_rows between_words(const language& source_side, const sentence& source, const weight_rows& given,
                                 word_tokens target, bool with_end, std::size_t depth = 1)
{
    weight_rows in_order;
    for (const auto& row : given) in_order.push_back(source_side.as_written(row, depth));
    if (with_end) target.push_back({given.size() - 1});
    return between_words(in_order, target, source_side.tokens_of_words(source), depth);
}

/// Replaces the words that the model does not know by the source word with the most weight, or by its meaning if it has
/// one. A word is unknown if one of its pieces is.
inline void replace_unknown(const language& source_side, const sentence& source, const weight_rows& weights,
                            const std::unordered_map<std::string, std::string>& meanings, reading& read)
{
    if (std::find(read.unknown.begin(), read.unknown.end(), true) == read.unknown.end()) return;
    const auto rows = between_words(source_side, source, weights, read.tokens, false);
    const std::string mark(heed::text::vocabulary::special_words[heed::text::vocabulary::unk]);
    for (std::size_t j = 0; j < read.words.size(); ++j) {
        if (!read.unknown[j]) continue;
        read.words[j] = heed::text::replace_unknown<float>({mark}, source, {rows[j]}, meanings, mark).front();
    }
}

inline std::vector<float> flat(const weight_rows& rows)
{
    std::vector<float> all;
    for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
    return all;
}

/// The label of the source's end word in pictures.
inline constexpr const char* end_of_sentence = "</s>";

/// A translation for a page. `weights`: the model's, if it has attention. A single model (`alone`) with weights per
/// dimension provides those; several models have no dimensions in common.
inline heed::view::translation for_page(const translator_file& model, bool alone, const sentence& source,
                                        const id_sentence& written, const reading& read, const weight_rows& weights)
{
    heed::view::translation shown{.words = read.words};
    const std::size_t tokens = model.source.tokens_of_words(source).back().front() + 1;
    // A page is for sentences; for a whole book in one line, only the mean over the dimensions is kept.
    const std::size_t most = std::size_t{1} << 27;
    if (alone && (written.size() + 1) * tokens <= most / (2 * model.how.hidden)) {
        const weight_rows rows = model.system->look_by_dimension(model.source.encode(source), written);
        if (!rows.empty()) {
            shown.dimensions = rows.front().size() / tokens;
            shown.weights = flat(between_words(model.source, source, rows, read.tokens, false, shown.dimensions));
            return shown;
        }
    }
    if (!weights.empty()) shown.weights = flat(between_words(model.source, source, weights, read.tokens, false));
    return shown;
}

}  // namespace translation
