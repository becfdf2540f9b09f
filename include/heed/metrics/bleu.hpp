// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/text/sentence.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace heed::metrics {

/// What BLEU is computed from, summed over a corpus: n-grams that match, n-grams that there are (index n - 1), lengths.
struct bleu_counts {
    std::array<std::size_t, 4> matches{};
    std::array<std::size_t, 4> totals{};
    std::size_t hypothesis_length = 0;
    std::size_t reference_length = 0;
};

/// A BLEU score and what it is made of.
struct bleu_score {
    double score = 0;                    ///< 0 … 100
    std::array<double, 4> precisions{};  ///< of 1- to 4-grams, 0 … 100
    double brevity_penalty = 0;          ///< 0 … 1
    std::size_t hypothesis_length = 0;   ///< tokens
    std::size_t reference_length = 0;    ///< tokens

    /// "BLEU = 34.12, 65.1/40.2/27.0/18.5 (BP=0.987, ratio=0.987, hyp_len=11820, ref_len=11974)"
    std::string text() const;
};

///     BLEU = 100 · BP · exp(¼ Σ_{n=1..4} log p_n)        Papineni et al. 2002 · SPEC Q1
///     p_n  = clipped matches / n-grams of the hypotheses,  BP = min(1, exp(1 - r / h))
///
/// As multi-bleu.perl: no smoothing, so the score is 0 where an order has no match.
inline bleu_score bleu(const bleu_counts& counts)
{
    bleu_score result;
    result.hypothesis_length = counts.hypothesis_length;
    result.reference_length = counts.reference_length;
    if (counts.hypothesis_length == 0 || counts.reference_length == 0) return result;

    const double ratio = static_cast<double>(counts.reference_length) / static_cast<double>(counts.hypothesis_length);
    result.brevity_penalty = ratio > 1 ? std::exp(1 - ratio) : 1;

    bool every_order_matches = true;
    double sum_of_logs = 0;
    for (std::size_t n = 0; n < 4; ++n) {
        if (counts.matches[n] == 0 || counts.totals[n] == 0) {
            every_order_matches = false;
            continue;
        }
        const double precision = static_cast<double>(counts.matches[n]) / static_cast<double>(counts.totals[n]);
        result.precisions[n] = 100 * precision;
        sum_of_logs += std::log(precision);
    }
    if (every_order_matches) result.score = 100 * result.brevity_penalty * std::exp(sum_of_logs / 4);
    return result;
}

/// Gathers the counts sentence by sentence, in time linear in the tokens.
class bleu_counter {
public:
    /// Adds a hypothesis and its one reference. Either may be empty.
    void add(std::span<const std::string> hypothesis, std::span<const std::string> reference)
    {
        counts_.hypothesis_length += hypothesis.size();
        counts_.reference_length += reference.size();
        visit(reference, [](std::size_t, std::size_t& left) { ++left; });
        visit(hypothesis, [this](std::size_t n, std::size_t& left) {
            ++counts_.totals[n];
            if (left == 0) return;  // clipped: the reference's occurrences are used up
            --left;
            ++counts_.matches[n];
        });
        words_.clear();
        grams_.clear();
    }

    const bleu_counts& counts() const { return counts_; }
    bleu_score score() const { return bleu(counts_); }

private:
    // Up to four words by number, the unused places 0: exact, unlike a hash of their text.
    using gram = std::array<std::uint32_t, 4>;

    struct gram_hash {
        std::size_t operator()(const gram& words) const
        {
            std::uint64_t state = 0;
            for (const std::uint32_t word : words) {
                state = (state ^ word) * 0x9E3779B97F4A7C15u;
                state ^= state >> 29;
            }
            return static_cast<std::size_t>(state);
        }
    };

    void visit(std::span<const std::string> sentence, auto&& see)
    {
        gram last{};  // the latest word first
        for (std::size_t i = 0; i < sentence.size(); ++i) {
            last = {number(sentence[i]), last[0], last[1], last[2]};
            gram words{};
            for (std::size_t n = 0; n < 4 && n <= i; ++n) {
                words[n] = last[n];
                see(n, grams_[words]);
            }
        }
    }

    std::uint32_t number(std::string_view word)
    {
        return words_.emplace(word, static_cast<std::uint32_t>(words_.size() + 1)).first->second;
    }

    bleu_counts counts_;
    std::unordered_map<std::string_view, std::uint32_t> words_;  // of the pair at hand
    std::unordered_map<gram, std::size_t, gram_hash> grams_;     // in its reference, not matched yet
};

/// Corpus BLEU over the given tokens, one reference a sentence. Throws heed::error if the counts of sentences differ.
inline bleu_score bleu(std::span<const text::sentence> hypotheses, std::span<const text::sentence> references)
{
    if (hypotheses.size() != references.size())
        throw error("bleu: " + std::to_string(hypotheses.size()) + " hypotheses but " +
                    std::to_string(references.size()) + " references; each sentence needs one of both");
    bleu_counter counter;
    for (std::size_t i = 0; i < hypotheses.size(); ++i) counter.add(hypotheses[i], references[i]);
    return counter.score();
}

inline std::string bleu_score::text() const
{
    // to_chars and not printf: a decimal comma from the user's locale would break whoever parses this line.
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

}  // namespace heed::metrics
