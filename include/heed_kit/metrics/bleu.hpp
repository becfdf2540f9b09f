// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/ngrams.hpp>
#include <heed_kit/metrics/progress.hpp>
#include <heed_kit/metrics/references.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace heed::inline HEED_TARGET::metrics {

/// The statistics of BLEU: matching n-grams, n-grams (index n - 1) and lengths, of one sentence or summed over a
/// corpus.
struct bleu_counts {
    std::array<std::size_t, 4> matches{};
    std::array<std::size_t, 4> totals{};
    std::size_t hypothesis_length = 0;  ///< in words
    std::size_t reference_length = 0;   ///< in words

    bleu_counts& operator+=(const bleu_counts& other)
    {
        for (std::size_t n = 0; n < 4; ++n) {
            matches[n] += other.matches[n];
            totals[n] += other.totals[n];
        }
        hypothesis_length += other.hypothesis_length;
        reference_length += other.reference_length;
        return *this;
    }
};

/// Smoothing of n-gram orders without a match. `none`: the score is 0, as in multi-bleu.perl. `exponential`: the k-th
/// such order counts as 1/2ᵏ of a match, as in mteval-v13a and, by default, sacrebleu (Chen & Cherry 2014, method 3);
/// without any match, the score is still 0.
enum class smoothing { none, exponential };

/// A BLEU score and its components.
struct bleu_score {
    double score = 0;                    ///< 0 … 100
    std::array<double, 4> precisions{};  ///< of 1- to 4-grams, 0 … 100
    double brevity_penalty = 0;          ///< 0 … 1
    std::size_t hypothesis_length = 0;   ///< tokens
    std::size_t reference_length = 0;    ///< tokens

    /// "BLEU = 34.12, 65.1/40.2/27.0/18.5 (BP=0.987, ratio=0.987, hyp_len=11820, ref_len=11974)"
    std::string text() const;
};

///     BLEU = 100 · BP · exp(¼ Σ_{n=1..4} log p_n)        Papineni et al. 2002
///     p_n  = clipped matches / n-grams of the hypotheses,  BP = min(1, exp(1 - r / h))
///
/// If there is no n-gram of an order (no hypothesis has four words), the score is 0, even with smoothing.
inline bleu_score bleu(const bleu_counts& counts, smoothing smooth = smoothing::none)
{
    bleu_score result;
    result.hypothesis_length = counts.hypothesis_length;
    result.reference_length = counts.reference_length;
    if (counts.hypothesis_length == 0 || counts.reference_length == 0) return result;

    const double ratio = static_cast<double>(counts.reference_length) / static_cast<double>(counts.hypothesis_length);
    result.brevity_penalty = ratio > 1 ? std::exp(1 - ratio) : 1;

    // If no word matches, no longer n-gram can match.
    const bool smoothed = smooth == smoothing::exponential && counts.matches[0] > 0;
    bool every_order_matches = true;
    double sum_of_logs = 0;
    double share = 1;
    for (std::size_t n = 0; n < 4; ++n) {
        double matches = static_cast<double>(counts.matches[n]);
        if (counts.matches[n] == 0 && smoothed) matches = share /= 2;
        if (matches == 0 || counts.totals[n] == 0) {
            every_order_matches = false;
            continue;
        }
        const double precision = matches / static_cast<double>(counts.totals[n]);
        result.precisions[n] = 100 * precision;
        sum_of_logs += std::log(precision);
    }
    if (every_order_matches) result.score = 100 * result.brevity_penalty * std::exp(sum_of_logs / 4);
    return result;
}

/// Collects the counts sentence by sentence, in time linear in the tokens.
class bleu_counter {
public:
    /// Adds a hypothesis and its only reference, and returns their counts. Both may be empty.
    bleu_counts add(std::span<const std::string> hypothesis, std::span<const std::string> reference)
    {
        count_reference(reference);
        return count_hypothesis(hypothesis, reference.size());
    }

    /// As above with several references: the matches of each n-gram are clipped at its largest count in any reference,
    /// and the reference length is the closest one (of two equally close, the shorter). Empty references are ignored if
    /// another has words (metrics/references.hpp). Throws heed::error if there is no reference.
    bleu_counts add(std::span<const std::string> hypothesis, std::span<const text::sentence> references)
    {
        std::optional<std::size_t> closest;
        const auto distance = [&](std::size_t length) {
            return std::max(length, hypothesis.size()) - std::min(length, hypothesis.size());
        };
        detail::for_each_reference("bleu", references, [&](const text::sentence& each) {
            count_reference(each);
            const std::size_t length = each.size();
            if (!closest || distance(length) < distance(*closest) ||
                (distance(length) == distance(*closest) && length < *closest))
                closest = length;
        });
        return count_hypothesis(hypothesis, *closest);
    }

    const bleu_counts& counts() const { return counts_; }
    bleu_score score(smoothing smooth = smoothing::none) const { return bleu(counts_, smooth); }  // of all pairs so far

private:
    struct occurrences {
        std::size_t left = 0;     // remaining matches: initially the largest count in one reference
        std::size_t current = 0;  // in the current reference
        std::size_t reference = 0;
    };

    void count_reference(std::span<const std::string> reference)
    {
        ++reference_;
        detail::for_each_gram<4>(numbers_(reference), 4, [this](std::size_t, const detail::gram<4>& words) {
            occurrences& these = grams_[words];
            if (these.reference != reference_) these.current = 0;
            these.reference = reference_;
            these.left = std::max(these.left, ++these.current);
        });
    }

    bleu_counts count_hypothesis(std::span<const std::string> hypothesis, std::size_t reference_length)
    {
        bleu_counts here;
        here.hypothesis_length = hypothesis.size();
        here.reference_length = reference_length;
        detail::for_each_gram<4>(numbers_(hypothesis), 4, [&](std::size_t n, const detail::gram<4>& words) {
            ++here.totals[n];
            const auto found = grams_.find(words);
            if (found == grams_.end() || found->second.left == 0) return;  // clipped: no match remains
            --found->second.left;
            ++here.matches[n];
        });
        counts_ += here;
        numbers_.clear();
        grams_.clear();
        reference_ = 0;
        return here;
    }

    bleu_counts counts_;
    detail::word_numbers numbers_;  // numbers of the words of the current pair
    std::unordered_map<detail::gram<4>, occurrences, detail::gram_hash> grams_;
    std::size_t reference_ = 0;
};

/// The counts of each sentence, for the bootstrap; computed by heed's threads. `references` has one list of sentences
/// per set of references. Throws heed::error if there is no set, or if the numbers of sentences differ.
inline std::vector<bleu_counts> bleu_statistics(std::span<const text::sentence> hypotheses,
                                                std::span<const std::vector<text::sentence>> references,
                                                const progress& seen = {})
{
    detail::require_as_many("bleu", hypotheses.size(), references);
    return detail::of_each_sentence<bleu_counts>(
        hypotheses.size(), seen, [&, counter = bleu_counter()](std::size_t i) mutable {
            const std::vector<text::sentence> here = detail::line_of(references, i);
            return counter.add(hypotheses[i], std::span<const text::sentence>(here));
        });
}

/// Corpus BLEU over the given tokens, one reference per sentence. Throws heed::error if the numbers of sentences
/// differ.
inline bleu_score bleu(std::span<const text::sentence> hypotheses, std::span<const text::sentence> references,
                       smoothing smooth = smoothing::none)
{
    detail::require_as_many("bleu", hypotheses.size(), references.size());
    bleu_counter counter;
    for (std::size_t i = 0; i < hypotheses.size(); ++i)
        counter.add(hypotheses[i], std::span<const std::string>(references[i]));
    return counter.score(smooth);
}

inline std::string bleu_score::text() const
{
    // to_chars instead of printf: a decimal comma from the locale would break programs that parse this line
    const auto fixed = [](double value, int digits) {
        std::array<char, 64> buffer{};
        const auto end =
            std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, digits);
        return std::string(buffer.data(), end.ptr);
    };
    const double ratio =
        reference_length == 0 ? 0 : static_cast<double>(hypothesis_length) / static_cast<double>(reference_length);
    std::string line = "BLEU = " + fixed(score, 2) + ", ";
    for (std::size_t n = 0; n < 4; ++n) line += (n > 0 ? "/" : "") + fixed(precisions[n], 1);
    return line + " (BP=" + fixed(brevity_penalty, 3) + ", ratio=" + fixed(ratio, 3) +
           ", hyp_len=" + std::to_string(hypothesis_length) + ", ref_len=" + std::to_string(reference_length) + ")";
}

}  // namespace heed::inline HEED_TARGET::metrics
