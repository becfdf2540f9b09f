// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <heed_kit/text/corpus.hpp>
#include <heed_kit/view/page.hpp>
#include <heed_translator/model_file.hpp>
#include <heed_translator/word_weights.hpp>

#include "library.hpp"

/// Converts translations and their weights for heed::view.
namespace translation {

/// Pairs of words that the weights refer to.
inline heed::text::parallel_corpus shown(const translator_file& file, heed::text::parallel_corpus pairs)
{
    for (sentence& each : pairs.source) each = file.source.shown(each);
    for (sentence& each : pairs.target) each = file.target.shown(each);
    return pairs;
}

/// A line of --tokens: the words that links and weights between two sentences refer to, in the format of fast_align.
inline std::string words_beside(const sentence& source, const sentence& target)
{
    return heed::text::join(source) + " ||| " + heed::text::join(target) + '\n';
}

inline std::vector<float> flat(const weight_rows& rows)
{
    std::vector<float> all;
    for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
    return all;
}

/// The label of the source's end word in pictures.
inline constexpr const char* end_of_sentence = "</s>";

/// A translation for a page. `weights`: between words, without the row of the end, if the model has attention. A single
/// model (`alone`) with per-dimension weights provides those; several models have no dimensions in common.
inline heed::view::translation for_page(const translator_file& model, bool alone, const sentence& source,
                                        const id_sentence& written, const reading& read, const weight_rows& weights)
{
    heed::view::translation shown{.words = read.words};
    const std::size_t tokens = model.source.tokens_of_words(source).back().front() + 1;
    // A page shows sentences; for a very long line, such as a whole book, only the mean over the dimensions is kept.
    const std::size_t most = std::size_t{1} << 27;
    if (alone && (written.size() + 1) * tokens <= most / (2 * model.how.hidden)) {
        const weight_rows rows = model.system->weights_by_dimension(model.source.encode(source), written);
        if (!rows.empty()) {
            shown.dimensions = rows.front().size() / tokens;
            shown.weights = flat(between_words(model.source, source, rows, read.tokens, false, shown.dimensions));
            return shown;
        }
    }
    shown.weights = flat(weights);
    return shown;
}

}  // namespace translation
