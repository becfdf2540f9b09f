// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/ngrams.hpp>
#include <heed_kit/metrics/progress.hpp>
#include <heed_kit/metrics/references.hpp>
#include <heed_kit/metrics/suffixes.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// RIBES measures the agreement of word order with a reference. Designed for language pairs such as Japanese and
/// English, where BLEU hardly reflects a swap of cause and effect.
namespace heed::inline HEED_TARGET::metrics {

/// The exponents of RIBES; the defaults are those of the authors.
struct ribes_options {
    double alpha = 0.25;  ///< exponent of the precision
    double beta = 0.10;   ///< exponent of the brevity penalty
};

/// RIBES of one sentence and its components; all 0 … 1.
struct ribes_score {
    double score = 0;
    double order = 0;  ///< Kendall's τ, normalized: the share of word pairs in the same order as in the reference
    double precision = 0;
    double brevity_penalty = 0;
};

/// The sum of RIBES over sentences; the corpus score is their mean.
struct ribes_sum {
    double total = 0;
    std::size_t sentences = 0;

    ribes_sum& operator+=(const ribes_sum& other)
    {
        total += other.total;
        sentences += other.sentences;
        return *this;
    }
    double score() const { return sentences == 0 ? 0 : total / static_cast<double>(sentences); }
};

namespace detail {

/// For each word of the hypothesis: the length of the shortest part of the text that begins (or ends) at it and occurs
/// exactly once in the hypothesis and in the reference, and the word of the reference where that part begins (ends).
struct unique_part {
    std::size_t length = std::numeric_limits<std::size_t>::max();
    std::size_t place = 0;
};

/// Parts that begin at a word. A part is unique in its text if it is longer than the common prefix with every other
/// position. It occurs once in the other text if it matches one position there and is longer than the common prefix
/// with any second position. Positions with long common prefixes are neighbors in suffix order, so one pass in each
/// direction finds them.
inline std::vector<unique_part> unique_parts(std::span<const std::uint32_t> hypothesis,
                                             std::span<const std::uint32_t> reference)
{
    struct shared {
        std::size_t length = 0, place = 0;
    };
    struct neighbors {
        std::size_t own = 0;   // common prefix with another position of the hypothesis
        shared first, second;  // longest two common prefixes with positions of the reference

        void see(const shared& other)
        {
            if (other.length > first.length) {
                second = first;
                first = other;
            } else if (other.length > second.length) {
                second = other;
            }
        }
    };

    std::vector<std::uint32_t> text(hypothesis.begin(), hypothesis.end());
    text.push_back(0);  // not the number of a word
    text.insert(text.end(), reference.begin(), reference.end());
    const suffix_order suffixes = order_suffixes(text);
    std::vector<neighbors> found(hypothesis.size());
    const auto pass = [&](bool upwards) {
        std::size_t own = 0;
        shared nearest, next;  // positions of the reference already passed
        for (std::size_t step = 0; step < text.size(); ++step) {
            const std::size_t rank = upwards ? step : text.size() - 1 - step;
            const std::size_t common = step == 0 ? 0 : suffixes.common[upwards ? rank : rank + 1];
            own = std::min(own, common);
            nearest.length = std::min(nearest.length, common);
            next.length = std::min(next.length, common);
            const std::size_t start = suffixes.start[rank];
            if (start < hypothesis.size()) {
                neighbors& here = found[start];
                here.own = std::max(here.own, own);
                here.see(nearest);
                here.see(next);
                own = std::numeric_limits<std::size_t>::max();
            } else if (start > hypothesis.size()) {
                next = nearest;
                nearest = {std::numeric_limits<std::size_t>::max(), start - hypothesis.size() - 1};
            }
        }
    };
    pass(true);
    pass(false);

    std::vector<unique_part> result(hypothesis.size());
    for (std::size_t i = 0; i < hypothesis.size(); ++i) {
        const std::size_t shortest = std::max(found[i].own, found[i].second.length) + 1;
        if (shortest <= found[i].first.length) result[i] = {shortest, found[i].first.place};
    }
    return result;
}

/// Pairs in ascending order among all pairs, in time n log n (merging).
inline std::size_t ascending_pairs(std::vector<std::size_t> places)
{
    std::size_t count = 0;
    std::vector<std::size_t> merged(places.size());
    for (std::size_t width = 1; width < places.size(); width *= 2) {
        for (std::size_t begin = 0; begin < places.size(); begin += 2 * width) {
            const std::size_t middle = std::min(begin + width, places.size());
            const std::size_t end = std::min(begin + 2 * width, places.size());
            std::size_t left = begin, right = middle;
            for (std::size_t out = begin; out < end; ++out) {
                // Equal values are not ascending: the right one is merged first.
                if (left < middle && (right == end || places[left] < places[right])) {
                    count += end - right;
                    merged[out] = places[left++];
                } else {
                    merged[out] = places[right++];
                }
            }
        }
        places.swap(merged);
    }
    return count;
}

}  // namespace detail

/// The reference position of each word of the hypothesis, from 0, or none if it is ambiguous. A word that occurs once
/// in both corresponds to itself; other words are identified by their context, the shortest sequence of words that ends
/// or begins with the word and occurs once in both (of equally short sequences, the one that ends with it). Isozaki et
/// al. 2010, section 3; the contexts are those of the authors' RIBES 1.02 and later.
inline std::vector<std::optional<std::size_t>> rank_alignment(std::span<const std::string> hypothesis,
                                                              std::span<const std::string> reference)
{
    detail::word_numbers numbers;
    std::vector<std::uint32_t> words = numbers(hypothesis), others = numbers(reference);
    const auto beginning = detail::unique_parts(words, others);
    std::reverse(words.begin(), words.end());
    std::reverse(others.begin(), others.end());
    const auto ending = detail::unique_parts(words, others);

    constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    std::vector<std::optional<std::size_t>> result(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
        const detail::unique_part& before = ending[words.size() - 1 - i];
        const detail::unique_part& after = beginning[i];
        if (before.length != none && before.length <= after.length)
            result[i] = others.size() - 1 - before.place;
        else if (after.length != none)
            result[i] = after.place;
    }
    return result;
}

///     RIBES = NKT · P^α · BP^β             Isozaki et al. 2010; Hirao et al. 2014
///     NKT = (τ + 1) / 2 = ascending pairs / pairs,  P = aligned words / words,  BP = min(1, exp(1 - r / h))
///
/// Computed over the words that rank_alignment() finds in the reference. With fewer than two aligned words, the score
/// is 0, unless the reference is that one word (then NKT is 1). 0 for an empty hypothesis. Throws heed::error for an
/// empty reference. Time n log² n.
inline ribes_score ribes(std::span<const std::string> hypothesis, std::span<const std::string> reference,
                         const ribes_options& how = {})
{
    if (reference.empty()) throw error("ribes: a reference has no words; at least one is required");
    ribes_score result;
    if (hypothesis.empty()) return result;
    const double words = static_cast<double>(hypothesis.size());
    result.brevity_penalty = std::min(1.0, std::exp(1 - static_cast<double>(reference.size()) / words));

    std::vector<std::size_t> places;
    for (const auto& place : rank_alignment(hypothesis, reference))
        if (place) places.push_back(*place);
    if (places.size() < 2 && !(places.size() == 1 && reference.size() == 1)) return result;
    const double count = static_cast<double>(places.size());
    result.precision = count / words;
    result.order =
        count == 1 ? 1 : static_cast<double>(detail::ascending_pairs(std::move(places))) / (count * (count - 1) / 2);
    result.score = result.order * std::pow(result.precision, how.alpha) * std::pow(result.brevity_penalty, how.beta);
    return result;
}

/// As above with several references: the maximum of their scores. Empty references are ignored if another has words
/// (metrics/references.hpp). Throws heed::error if there is no reference, or if all are empty.
inline ribes_score ribes(std::span<const std::string> hypothesis, std::span<const text::sentence> references,
                         const ribes_options& how = {})
{
    std::optional<ribes_score> best;
    detail::for_each_reference("ribes", references, [&](const text::sentence& each) {
        const ribes_score score = ribes(hypothesis, std::span<const std::string>(each), how);
        if (!best || score.score > best->score) best = score;
    });
    return *best;
}

/// RIBES of each sentence, for the bootstrap; computed by heed's threads. Sentences with an empty reference are
/// ignored. Throws heed::error if the numbers of sentences differ.
inline std::vector<ribes_sum> ribes_statistics(std::span<const text::sentence> hypotheses,
                                               std::span<const text::sentence> references,
                                               const ribes_options& how = {}, const progress& seen = {})
{
    detail::require_as_many("ribes", hypotheses.size(), references.size());
    return detail::of_each_sentence<ribes_sum>(hypotheses.size(), seen, [&](std::size_t i) {
        if (references[i].empty()) return ribes_sum{};
        const std::span<const std::string> hypothesis(hypotheses[i]), reference(references[i]);
        return ribes_sum{ribes(hypothesis, reference, how).score, 1};
    });
}

/// As above with several references: one list of sentences per set. A sentence counts if any of its references has
/// words. Also throws heed::error if there is no set.
inline std::vector<ribes_sum> ribes_statistics(std::span<const text::sentence> hypotheses,
                                               std::span<const std::vector<text::sentence>> references,
                                               const ribes_options& how = {}, const progress& seen = {})
{
    detail::require_as_many("ribes", hypotheses.size(), references);
    return detail::of_each_sentence<ribes_sum>(hypotheses.size(), seen, [&](std::size_t i) {
        const std::vector<text::sentence> here = detail::line_of(references, i);
        if (std::all_of(here.begin(), here.end(), [](const text::sentence& each) { return each.empty(); }))
            return ribes_sum{};
        const std::span<const std::string> hypothesis(hypotheses[i]);
        return ribes_sum{ribes(hypothesis, std::span<const text::sentence>(here), how).score, 1};
    });
}

/// The mean RIBES of the sentences, 0 … 1. Throws heed::error if the numbers of sentences differ.
inline double ribes(std::span<const text::sentence> hypotheses, std::span<const text::sentence> references,
                    const ribes_options& how = {})
{
    ribes_sum sum;
    for (const ribes_sum& each : ribes_statistics(hypotheses, references, how)) sum += each;
    return sum.score();
}

}  // namespace heed::inline HEED_TARGET::metrics
