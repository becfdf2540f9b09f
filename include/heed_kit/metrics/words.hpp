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

/// The lexical richness of a text. Models tend to repeat frequent words: few distinct words, mostly the most common
/// words of the reference.
struct word_statistics {
    std::size_t sentences = 0;
    std::size_t words = 0;
    std::size_t distinct = 0;  ///< distinct words
    std::size_t once = 0;      ///< words that occur once
    std::size_t unknown = 0;   ///< occurrences of `<unk>`
    std::size_t pairs = 0;     ///< distinct pairs of neighboring words
    std::size_t distinct_pairs = 0;

    double mean_length() const { return share(words, sentences); }  // words per sentence
    /// Distinct words / words: distinct-1 of Li et al. 2016, the type-token ratio. It decreases with the size of the
    /// text, so compare only texts of the same sentences.
    double distinct_1() const { return share(distinct, words); }
    double distinct_2() const { return share(distinct_pairs, pairs); }  // share of word pairs that are distinct

    /// part / whole; 0 if both are 0.
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

/// Comparison of the distinct words of a text with those of another, such as its reference or the training data.
struct word_overlap {
    std::size_t distinct = 0;        ///< distinct words of the text
    std::size_t other_distinct = 0;  ///< distinct words of the other text
    std::size_t shared = 0;          ///< distinct words of both

    double known() const { return word_statistics::share(shared, distinct); }          ///< share of the text
    double covered() const { return word_statistics::share(shared, other_distinct); }  ///< share of the other text
};

/// The number of distinct words of a text that another text has, and vice versa. Case-sensitive.
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
