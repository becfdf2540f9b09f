// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/ngrams.hpp>
#include <heed_kit/metrics/suffixes.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

/// Detects phrases that a sentence repeats, a typical failure of attention that does not track its past (Sankaran et
/// al. 2016, sections 1 and 6.4.1).
namespace heed::inline HEED_TARGET::metrics {

/// The minimum length of a repetition.
struct repetition_options {
    std::size_t shortest = 2;           ///< in words, if other words are in between: "the … the" is not an error
    std::size_t shortest_adjacent = 1;  ///< in words, if adjacent: "the the" is an error
};

/// A repetition: the words begin … begin + length - 1 have occurred before.
struct repetition {
    std::size_t begin = 0;
    std::size_t length = 0;   ///< in words
    std::size_t earlier = 0;  ///< position of the earlier occurrence
    bool adjacent = false;    ///< immediately before
};

/// The repetitions of a sentence, from left to right.
///
/// At each word, the longest phrase that has occurred before without overlapping is a repetition, and the search
/// continues after it. A phrase that consists of repetitions of a shorter phrase counts as repetitions of the shorter
/// one:
/// "a b a b a b a b" has three repetitions of two words. The paper does not define the count; this definition is ours.
/// Time linear in the words (times the options' lengths). Throws heed::error if a minimum length is 0.
inline std::vector<repetition> find_repetitions(std::span<const std::string> words, const repetition_options& how = {})
{
    if (how.shortest == 0 || how.shortest_adjacent == 0)
        throw error("repetitions: a phrase of 0 words; it must have at least 1");
    detail::word_numbers numbers;
    const std::vector<std::uint32_t> text = numbers(words);
    const detail::suffix_automaton parts(text);
    const auto said_before = [&](std::size_t begin, std::size_t length) {  // immediately before
        return length <= begin && std::equal(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                             text.begin() + static_cast<std::ptrdiff_t>(begin + length),
                                             text.begin() + static_cast<std::ptrdiff_t>(begin - length));
    };
    // The length of the shortest phrase that makes up a phrase by repetition: its smallest period, if it divides the
    // length.
    const auto root = [&](std::size_t begin, std::size_t length) {
        std::vector<std::size_t> border(length, 0);
        for (std::size_t i = 1, matched = 0; i < length; ++i) {
            while (matched > 0 && text[begin + i] != text[begin + matched]) matched = border[matched - 1];
            if (text[begin + i] == text[begin + matched]) ++matched;
            border[i] = matched;
        }
        const std::size_t period = length - border[length - 1];
        return length % period == 0 ? period : length;
    };

    std::vector<repetition> result;
    for (std::size_t begin = 0; begin < text.size();) {
        std::size_t length = 0, earlier_end = 0;
        for (std::size_t state = 0; begin + length < text.size(); ++length) {
            state = parts.step(state, text[begin + length]);
            if (parts.first_end(state) > begin) break;  // it overlaps itself or occurs for the first time
            earlier_end = parts.first_end(state);
        }
        std::size_t found = length >= how.shortest ? length : 0;
        for (std::size_t adjacent = length; found == 0 && adjacent >= how.shortest_adjacent; --adjacent)
            if (said_before(begin, adjacent)) found = adjacent;
        if (found == 0) {
            ++begin;
            continue;
        }
        const std::size_t piece = root(begin, found);
        for (std::size_t done = 0; done < found; done += piece) {
            const bool adjacent = done > 0 || said_before(begin, piece);
            if (!adjacent && piece < how.shortest) continue;  // "the the … the the": the third is not an error
            result.push_back({begin + done, piece, adjacent ? begin + done - piece : earlier_end - length, adjacent});
        }
        begin += found;
    }
    return result;
}

/// Counts of repetitions in a corpus.
struct repetition_statistics {
    std::size_t sentences = 0;
    std::size_t words = 0;           ///< words of all sentences
    std::size_t affected = 0;        ///< sentences with a repetition
    std::size_t repetitions = 0;     ///< all repetitions
    std::size_t adjacent = 0;        ///< repetitions immediately after the repeated phrase
    std::size_t repeated_words = 0;  ///< repeated words
    std::size_t most = 0;            ///< maximum number of occurrences of a phrase in a sentence; 0 without repetitions

    /// The mean number of words of a repetition; 0 without repetitions.
    double mean_length() const
    {
        return repetitions == 0 ? 0 : static_cast<double>(repeated_words) / static_cast<double>(repetitions);
    }

    /// Adds the counts of a sentence.
    void add(std::span<const std::string> sentence, const repetition_options& how = {})
    {
        const std::vector<repetition> found = find_repetitions(sentence, how);
        ++sentences;
        words += sentence.size();
        affected += found.empty() ? 0u : 1u;
        repetitions += found.size();
        std::map<std::vector<std::string>, std::size_t> times;
        for (const repetition& each : found) {
            adjacent += each.adjacent ? 1u : 0u;
            repeated_words += each.length;
            const auto phrase = sentence.subspan(each.begin, each.length);
            most = std::max(most, 1 + ++times[{phrase.begin(), phrase.end()}]);
        }
    }
};

/// Counts the repetitions of many sentences.
inline repetition_statistics count_repetitions(std::span<const text::sentence> sentences,
                                               const repetition_options& how = {})
{
    repetition_statistics result;
    for (const text::sentence& each : sentences) result.add(each, how);
    return result;
}

}  // namespace heed::inline HEED_TARGET::metrics
