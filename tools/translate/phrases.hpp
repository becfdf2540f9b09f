// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/symmetrize.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/text/lexicon.hpp>
#include <heed_kit/text/phrases.hpp>
#include <heed_translator/language.hpp>

#include "../support/bars.hpp"
#include "library.hpp"

/// Phrases in a file: "source words ||| target words" on each line, the target words in order of preference. A word
/// "|||" is written as in support/bars.hpp.
namespace translation {

/// A line of the file, without the line break.
inline std::string phrases_text(const sentence& source, const sentence& target)
{
    std::string text;
    for (const std::string& word : source) text += program::written_word(word) + ' ';
    text += program::bars;
    for (const std::string& word : target) text += ' ' + program::written_word(word);
    return text;
}

/// Learns the phrases of a text: links by IBM Model 1 in both directions, symmetrized.
inline heed::text::phrase_table learn_phrases(const std::vector<id_sentence>& sources,
                                              const std::vector<id_sentence>& targets,
                                              const heed::text::lexicon& forward, std::size_t rounds)
{
    const auto reverse = heed::text::lexicon::learn(targets, sources, {.rounds = rounds});
    std::vector<heed::metrics::links> links;
    for (std::size_t n = 0; n < sources.size(); ++n) {
        links.push_back(heed::metrics::symmetrize(forward.align(sources[n], targets[n]),
                                                  heed::metrics::flipped(reverse.align(targets[n], sources[n])),
                                                  heed::metrics::symmetrization::grow_diag_final_and));
    }
    return heed::text::phrase_table::learn(sources, targets, links);
}

/// Like the above, with links in both directions learned here.
inline heed::text::phrase_table learn_phrases(const std::vector<id_sentence>& sources,
                                              const std::vector<id_sentence>& targets)
{
    const heed::text::lexicon_options how;
    return learn_phrases(sources, targets, heed::text::lexicon::learn(sources, targets, how), how.rounds);
}

/// The phrases whose words are in the vocabularies of a model.
inline heed::text::phrase_table read_phrases(const std::filesystem::path& path, const language& source,
                                             const language& target)
{
    heed::text::phrase_table table;
    std::ifstream file = heed::text::open_text(path);
    heed::text::sentence_reader lines(file, path.string());
    for (sentence fields; lines.next(fields);) {
        const auto middle = std::find(fields.begin(), fields.end(), program::bars);
        const auto length = static_cast<std::size_t>(middle - fields.begin());
        if (middle == fields.end() || length == 0 || length > heed::text::phrase_table::longest)
            throw heed::error(
                fmt::format("{}: expected a line of phrases: source words ||| target words, with 1 to {} source "
                            "words and spaces around |||",
                            lines.where(), heed::text::phrase_table::longest));
        id_sentence phrase;
        for (std::string& word : fields)
            if (&word != &*middle) word = program::read_word(word);
        for (auto word = fields.begin(); word != middle; ++word)
            if (source.vocabulary.contains(*word)) phrase.push_back(source.vocabulary.id(*word));
        if (phrase.size() != length) continue;
        std::vector<heed::text::phrase_table::translation> words;
        for (auto word = middle + 1; word != fields.end(); ++word)
            if (target.vocabulary.contains(*word)) words.push_back({target.vocabulary.id(*word), 0});
        table.set(phrase, std::move(words));
    }
    if (table.size() == 0)
        throw heed::error(path.string() + ": no phrase is in the model's vocabulary" +
                          (source.in_pieces() ? "; build one of subwords with `translate dictionary --model`" : ""));
    return table;
}

}  // namespace translation
