// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed_kit/metrics/ngrams.hpp>
#include <heed_kit/text/sentence.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <heed/core/cxx20.hpp>

namespace heed::inline HEED_TARGET::metrics {

/// The lexical richness of a text. A model that plays safe repeats the same frequent words: few distinct ones, many of
/// them the reference's most common.
struct word_statistics {
    std::size_t sentences = 0;
    std::size_t words = 0;
    std::size_t distinct = 0;  ///< different words
    std::size_t once = 0;      ///< words that occur once
    std::size_t unknown = 0;   ///< occurrences of `<unk>`
    std::size_t pairs = 0;     ///< of neighboring words
    std::size_t distinct_pairs = 0;

    double mean_length() const { return share(words, sentences); }  // words per sentence
    /// Distinct words / words: distinct-1 of Li et al. 2016, the type-token ratio. It falls with the size of the text:
    /// compare texts of the same sentences only.
    double distinct_1() const { return share(distinct, words); }
    double distinct_2() const { return share(distinct_pairs, pairs); }  // share of pairs of words that differ

    /// Part / whole, and 0 of nothing.
    static double share(std::size_t part, std::size_t whole)
    {
        return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
    }
};

/// The statistics of a text. Time linear in its words.
inline word_statistics count_words(std::span<const text::sentence> text)
{
    word_statistics result;
    result.sentences = text.size();
    std::unordered_map<std::string_view, std::size_t> times;
    std::unordered_set<detail::gram<2>, detail::gram_hash> pairs;
    detail::word_numbers numbers;
    for (const text::sentence& sentence : text) {
        result.words += sentence.size();
        for (const std::string& word : sentence) {
            ++times[word];
            if (word == "<unk>") ++result.unknown;
        }
        detail::for_each_gram<2>(numbers(sentence), 2, [&](std::size_t n, const detail::gram<2>& words) {
            if (n == 0) return;
            ++result.pairs;
            pairs.insert(words);
        });
    }
    result.distinct = times.size();
    result.distinct_pairs = pairs.size();
    for (const auto& each : times) result.once += each.second == 1 ? 1u : 0u;
    return result;
}

/// How the distinct words of a text compare with those of another, such as its reference or the training data.
struct word_overlap {
    std::size_t distinct = 0;        ///< words of the text
    std::size_t other_distinct = 0;  ///< words of the other
    std::size_t shared = 0;          ///< words of both

    double known() const { return word_statistics::share(shared, distinct); }          ///< share of the text's words
    double covered() const { return word_statistics::share(shared, other_distinct); }  ///< share of the other's words
};

/// How many of a text's distinct words another text has, and the other way round; upper and lower case differ.
inline word_overlap compare_words(std::span<const text::sentence> text, std::span<const text::sentence> other)
{
    std::unordered_set<std::string_view> words, others;
    for (const text::sentence& sentence : text) words.insert(sentence.begin(), sentence.end());
    for (const text::sentence& sentence : other) others.insert(sentence.begin(), sentence.end());
    word_overlap result{words.size(), others.size(), 0};
    for (const std::string_view word : words) result.shared += others.contains(word) ? 1u : 0u;
    return result;
}

}  // namespace heed::inline HEED_TARGET::metrics
