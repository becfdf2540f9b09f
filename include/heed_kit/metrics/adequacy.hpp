// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/alignment_error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Detects source words that a translation overlooks. Attention that skips a part of the source leaves it untranslated
/// ("lack of adequacy", Sankaran et al. 2016, section 1; "under-translation", Tu et al. 2016), the opposite of
/// repetition.
namespace heed::inline HEED_TARGET::metrics {

/// Criterion for overlooked source words.
struct adequacy_options {
    double threshold = 0.2;  ///< relative to the attention that one target word distributes, which sums to 1
};

/// The attention that each source word receives from all target words:
///
///     a_i = Σ_j α_ji        α_ji: the weight of source word i for target word j
///
/// Each of the `rows` has the weights of one target word, with a number for each of the `source_words`; additional
/// numbers are ignored (such as that of the end word in seq2seq::forced_decoding). Omit the row of the end word, which
/// does not translate a word. Throws heed::shape_error for a row that is too short.
template <class Rows>
std::vector<double> attention_received(const Rows& rows, std::size_t source_words)
{
    std::vector<double> received(source_words, 0.0);
    std::size_t j = 0;
    for (const auto& row : rows) {
        if (row.size() < source_words)
            throw shape_error("attention_received: row " + std::to_string(j) + " has " + counted(row.size(), "weight") +
                              " for " + counted(source_words, "source word"));
        for (std::size_t i = 0; i < source_words; ++i) received[i] += static_cast<double>(row[i]);
        ++j;
    }
    return received;
}

/// The same from links: 1 for each target word that is linked to a source word. Links to other positions are ignored.
inline std::vector<double> attention_received(const links& all, std::size_t source_words)
{
    std::vector<double> received(source_words, 0.0);
    for (const auto& link : all)
        if (std::cmp_less(link.first, source_words) && link.first >= 0)
            ++received[static_cast<std::size_t>(link.first)];
    return received;
}

/// How widely the weights of one target word are spread: their entropy, in bits.
///
///     H = −Σ_i p_i log₂ p_i,  p_i = α_i / Σ_k α_k
///
/// 0 if one position has all the weight, log₂ n if n positions share it equally; 0 for a row without positive weight.
/// Throws heed::error for a weight that is negative or not a number.
template <class Row>
double attention_entropy(const Row& row)
{
    double sum = 0, of_logs = 0;  // Σ α, Σ α log₂ α
    for (const auto& each : row) {
        const double weight = static_cast<double>(each);
        if (!(weight >= 0))
            throw error("attention_entropy: the weight " + std::to_string(weight) + " is not 0 or more");
        sum += weight;
        if (weight > 0) of_logs += weight * std::log2(weight);
    }
    return sum > 0 ? std::max(0.0, std::log2(sum) - of_logs / sum) : 0;
}

/// The source words with a_i < threshold, in order. The papers give examples but no definition; this definition is
/// ours. Function words may have no counterpart in correct translations, so compare systems on the same sentences.
/// Throws heed::error unless the threshold is above 0.
inline std::vector<std::size_t> overlooked_words(std::span<const double> received, const adequacy_options& how = {})
{
    if (!(how.threshold > 0))
        throw error("adequacy: with a threshold of " + std::to_string(how.threshold) +
                    ", no word is overlooked; it must be above 0");
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < received.size(); ++i)
        if (received[i] < how.threshold) result.push_back(i);
    return result;
}

/// Counts of overlooked source words, of one sentence or summed over a corpus.
struct adequacy_counts {
    std::size_t sentences = 0;
    std::size_t affected = 0;    ///< sentences with an overlooked word
    std::size_t words = 0;       ///< source words
    std::size_t overlooked = 0;  ///< overlooked source words

    adequacy_counts& operator+=(const adequacy_counts& other)
    {
        sentences += other.sentences;
        affected += other.affected;
        words += other.words;
        overlooked += other.overlooked;
        return *this;
    }

    /// The share of overlooked source words, 0 … 1; 0 without words.
    double share() const { return words == 0 ? 0 : static_cast<double>(overlooked) / static_cast<double>(words); }
};

/// The counts of one sentence, from the attention received by its words.
inline adequacy_counts count_overlooked(std::span<const double> received, const adequacy_options& how = {})
{
    const std::size_t count = overlooked_words(received, how).size();
    return {1, count > 0 ? 1u : 0u, received.size(), count};
}

}  // namespace heed::inline HEED_TARGET::metrics
