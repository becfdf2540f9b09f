// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed_kit/metrics/ngrams.hpp>
#include <heed_kit/metrics/progress.hpp>
#include <heed_kit/metrics/references.hpp>
#include <heed_kit/metrics/tokenize_13a.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace heed::inline HEED_TARGET::metrics {

/// The variant of chrF. The default is chrF2; with `words` = 2 it is chrF2++ (Popović 2017).
struct chrf_options {
    std::size_t characters = 6;  ///< maximum length of character n-grams, at most 6
    std::size_t words = 0;       ///< maximum length of word n-grams, at most 2
    double beta = 2;             ///< weight of recall relative to precision
    bool whitespace = false;     ///< let n-grams span word boundaries; the space is a character
    /// Average the F-scores of all orders, counting an order without n-grams as 0, as chrF++.py does. Otherwise average
    /// precision and recall over the orders that both texts have, as sacrebleu does.
    bool every_order = false;
};

/// The statistics of chrF, of one sentence or summed over a corpus: n-grams of characters (index n - 1) and of words
/// (index 5 + n).
struct chrf_counts {
    std::array<std::size_t, 8> hypothesis{};
    std::array<std::size_t, 8> reference{};
    std::array<std::size_t, 8> matches{};

    chrf_counts& operator+=(const chrf_counts& other)
    {
        for (std::size_t n = 0; n < 8; ++n) {
            hypothesis[n] += other.hypothesis[n];
            reference[n] += other.reference[n];
            matches[n] += other.matches[n];
        }
        return *this;
    }
};

namespace detail {

inline void check(const chrf_options& how)
{
    if (how.characters > 6 || how.words > 2 || how.characters + how.words == 0)
        throw error("chrf: n-grams of up to " + std::to_string(how.characters) + " characters and " +
                    std::to_string(how.words) + " words; the maxima are 6 and 2, and one must be at least 1");
    if (!(how.beta > 0)) throw error("chrf: beta is " + std::to_string(how.beta) + "; it must be above 0");
}

inline std::vector<std::uint32_t> characters(std::string_view text, bool whitespace, const char* whose)
{
    std::vector<std::uint32_t> codes;
    codes.reserve(text.size());
    for (std::size_t position = 0; position < text.size();) {
        const text::utf8_character character = text::utf8_at(text, position);
        if (!character.valid)
            throw error(std::string("chrf: byte ") + std::to_string(position + 1) + " of the " + whose +
                        " is not valid UTF-8");
        // 0 marks an unused position of an n-gram.
        if (whitespace || !is_unicode_space(character.code))
            codes.push_back(static_cast<std::uint32_t>(character.code) + 1);
        position += character.length;
    }
    return codes;
}

/// Words, with one punctuation mark split off the end, or else off the beginning: "(so)" becomes "(so" and ")".
inline text::sentence words_and_signs(std::string_view line)
{
    const auto is_sign = [](char byte) {
        return (byte >= '!' && byte <= '/') || (byte >= ':' && byte <= '@') || (byte >= '[' && byte <= '`') ||
               (byte >= '{' && byte <= '~');
    };
    text::sentence result;
    for (const std::string& word : split_at_unicode_space(line)) {
        const bool one = text::utf8_at(word, 0).length == word.size();
        if (!one && is_sign(word.back())) {
            result.push_back(word.substr(0, word.size() - 1));
            result.push_back(word.substr(word.size() - 1));
        } else if (!one && is_sign(word.front())) {
            result.push_back(word.substr(0, 1));
            result.push_back(word.substr(1));
        } else {
            result.push_back(word);
        }
    }
    return result;
}

template <std::size_t N>
void count_matches(std::span<const std::uint32_t> hypothesis, std::span<const std::uint32_t> reference,
                   std::size_t longest, std::size_t first, chrf_counts& counts)
{
    std::unordered_map<gram<N>, std::size_t, gram_hash> left;
    for_each_gram<N>(reference, longest, [&](std::size_t n, const gram<N>& key) {
        ++counts.reference[first + n];
        ++left[key];
    });
    for_each_gram<N>(hypothesis, longest, [&](std::size_t n, const gram<N>& key) {
        // As in sacrebleu, orders for which the reference is too short are ignored.
        if (n >= reference.size()) return;
        ++counts.hypothesis[first + n];
        const auto found = left.find(key);
        if (found == left.end() || found->second == 0) return;
        --found->second;
        ++counts.matches[first + n];
    });
}

}  // namespace detail

/// The n-grams shared by two lines of untokenized text. Time linear in their length. Throws heed::error for invalid
/// UTF-8 and for options out of range.
inline chrf_counts chrf_matches(std::string_view hypothesis, std::string_view reference, const chrf_options& how = {})
{
    detail::check(how);
    chrf_counts counts;
    detail::count_matches<6>(detail::characters(hypothesis, how.whitespace, "hypothesis"),
                             detail::characters(reference, how.whitespace, "reference"), how.characters, 0, counts);
    if (how.words > 0) {
        const text::sentence one = detail::words_and_signs(hypothesis), other = detail::words_and_signs(reference);
        detail::word_numbers numbers;
        const std::vector<std::uint32_t> first = numbers(one);
        detail::count_matches<2>(first, numbers(other), how.words, 6, counts);
    }
    return counts;
}

///     chrF = 100 · (1 + β²) · P · R / (β² · P + R)                  Popović 2015
///
/// P and R are the n-gram precision and recall, averaged over the orders that both texts have; 0 … 100. Equal to
/// sacrebleu with its defaults. Throws heed::error for options out of range.
inline double chrf(const chrf_counts& counts, const chrf_options& how = {})
{
    detail::check(how);
    const double factor = how.beta * how.beta;
    const auto f = [factor](double precision, double recall) {
        const double sum = factor * precision + recall;
        return sum > 0 ? (1 + factor) * precision * recall / sum : 0;
    };
    double precisions = 0, recalls = 0, scores = 0;
    std::size_t orders = 0;
    for (std::size_t n = 0; n < 8; ++n) {
        if (n < 6 ? n >= how.characters : n - 6 >= how.words) continue;
        if (counts.hypothesis[n] == 0 || counts.reference[n] == 0) continue;
        const double precision = static_cast<double>(counts.matches[n]) / static_cast<double>(counts.hypothesis[n]);
        const double recall = static_cast<double>(counts.matches[n]) / static_cast<double>(counts.reference[n]);
        precisions += precision;
        recalls += recall;
        scores += f(precision, recall);
        ++orders;
    }
    if (orders == 0) return 0;
    if (how.every_order) return 100 * scores / static_cast<double>(how.characters + how.words);
    return 100 * f(precisions / static_cast<double>(orders), recalls / static_cast<double>(orders));
}

/// As above with several references: uses the reference with the highest chrF (the first of equals), as in sacrebleu.
/// References without words are ignored if another has words (metrics/references.hpp). Throws heed::error if there is
/// no reference.
inline chrf_counts chrf_matches(std::string_view hypothesis, std::span<const std::string> references,
                                const chrf_options& how = {})
{
    chrf_counts best;
    double highest = -1;
    detail::for_each_reference("chrf", references, [&](const std::string& each) {
        const chrf_counts counts = chrf_matches(hypothesis, std::string_view(each), how);
        const double score = chrf(counts, how);
        if (score > highest) best = counts;
        highest = std::max(highest, score);
    });
    return best;
}

/// The counts of each line, for the bootstrap; computed by heed's threads. Throws heed::error if the numbers of lines
/// differ, and as chrf_matches() does.
inline std::vector<chrf_counts> chrf_statistics(std::span<const std::string> hypotheses,
                                                std::span<const std::string> references, const chrf_options& how = {},
                                                const progress& seen = {})
{
    detail::require_as_many("chrf", hypotheses.size(), references.size());
    return detail::of_each_sentence<chrf_counts>(hypotheses.size(), seen, [&](std::size_t i) {
        return chrf_matches(hypotheses[i], std::string_view(references[i]), how);
    });
}

/// As above with several references: one list of lines per set. Also throws heed::error if there is no set.
inline std::vector<chrf_counts> chrf_statistics(std::span<const std::string> hypotheses,
                                                std::span<const std::vector<std::string>> references,
                                                const chrf_options& how = {}, const progress& seen = {})
{
    detail::require_as_many("chrf", hypotheses.size(), references);
    return detail::of_each_sentence<chrf_counts>(hypotheses.size(), seen, [&](std::size_t i) {
        const std::vector<std::string> here = detail::line_of(references, i);
        return chrf_matches(hypotheses[i], std::span<const std::string>(here), how);
    });
}

/// Corpus chrF: counts are summed before dividing. Throws heed::error as chrf_statistics() does.
inline double chrf(std::span<const std::string> hypotheses, std::span<const std::string> references,
                   const chrf_options& how = {})
{
    chrf_counts sum;
    for (const chrf_counts& each : chrf_statistics(hypotheses, references, how)) sum += each;
    return chrf(sum, how);
}

}  // namespace heed::inline HEED_TARGET::metrics
