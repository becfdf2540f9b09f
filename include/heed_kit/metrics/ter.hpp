// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/ngrams.hpp>
#include <heed_kit/metrics/progress.hpp>
#include <heed_kit/metrics/references.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// TER, the translation edit rate: the number of edits that turn the hypothesis into the reference, relative to the
/// length of the reference.
///
/// An edit inserts, deletes or replaces a word, or moves ("shifts") a phrase anywhere: a phrase in the wrong position
/// costs 1, independent of its length. Finding the best sequence of shifts is NP-complete, so the metric is defined by
/// a particular greedy search, that of the program tercom. It repeats these steps: try to move each phrase shared by
/// hypothesis and reference to its position in the reference; apply the move with the smallest edit distance; stop if
/// no move helps.
namespace heed::inline HEED_TARGET::metrics {

/// The statistics of TER, of one sentence or summed over a corpus.
struct ter_counts {
    std::size_t edits = 0;        ///< shifts included
    std::size_t shifts = 0;       ///< number of shifts
    double reference_length = 0;  ///< words; with several references, the mean over those that are not empty

    ter_counts& operator+=(const ter_counts& other)
    {
        edits += other.edits;
        shifts += other.shifts;
        reference_length += other.reference_length;
        return *this;
    }
};

///     TER = 100 · edits / words of the references                  Snover et al. 2006
///
/// 0 if identical; may exceed 100 if hypotheses are much too long. 100 if there are edits but no reference words.
inline double ter(const ter_counts& counts)
{
    if (counts.reference_length == 0) return counts.edits == 0 ? 0 : 100;
    return 100 * static_cast<double>(counts.edits) / counts.reference_length;
}

///     TB = (TER - BLEU) / 2                                        Sankaran et al. 2016, table 2
///
/// Both in percent. Lower is better; -50 is perfect.
constexpr double tb(double ter, double bleu) { return (ter - bleu) / 2; }

namespace detail {

/// tercom's search, with its limits, for one sentence pair given as numbers.
class ter_search {
public:
    ter_search(std::vector<std::uint32_t> hypothesis, std::vector<std::uint32_t> reference)
        : words_(std::move(hypothesis)), reference_(std::move(reference))
    {}

    ter_counts run()
    {
        ter_counts result;
        result.reference_length = static_cast<double>(reference_.size());
        if (reference_.empty()) {
            result.edits = words_.size();
            return result;
        }
        lay_out();
        fill();
        while (const std::optional<shift> best = best_shift()) {
            if (candidates_ >= most_candidates || best->gain <= 0) break;
            move(words_, *best);
            fill();
            ++result.shifts;
        }
        result.edits = result.shifts + distance();
        return result;
    }

private:
    static constexpr std::size_t longest_shift = 10;      // words
    static constexpr std::size_t farthest_shift = 50;     // positions between the phrase and its counterpart
    static constexpr std::size_t most_candidates = 1000;  // shifts tried per sentence
    static constexpr std::size_t beam = 25;               // cells of the distance matrix on each side of the diagonal
    static constexpr std::uint32_t infinite = 1u << 30;

    enum class operation : std::uint8_t { replace, remove, insert };

    struct shift {
        std::int64_t gain = 0;
        std::size_t length = 0, from = 0, to = 0;

        // The largest gain, then the longest phrase, then the leftmost phrase, then the leftmost target position.
        bool better_than(const shift& other) const
        {
            return std::tuple(gain, length, other.from, other.to) > std::tuple(other.gain, other.length, from, to);
        }
    };

    // Row i of the distance matrix: cells first … last - 1 are the prefixes of the reference that are compared with the
    // first i words. Row 0 is complete; the others are around the diagonal from corner to corner.
    struct row {
        std::size_t first = 0, last = 0, offset = 0;
    };

    void lay_out()
    {
        const std::size_t rows = words_.size() + 1, columns = reference_.size() + 1;
        const double slope =
            words_.empty() ? 1 : static_cast<double>(reference_.size()) / static_cast<double>(words_.size());
        const std::size_t width = static_cast<double>(beam) < slope / 2
                                      ? static_cast<std::size_t>(std::ceil(slope / 2 + static_cast<double>(beam)))
                                      : beam;
        rows_.assign(rows, {});
        rows_[0] = {0, columns, 0};
        for (std::size_t i = 1; i < rows; ++i) {
            const auto diagonal = static_cast<std::size_t>(std::floor(static_cast<double>(i) * slope));
            rows_[i].first = diagonal > width ? diagonal - width : 0;
            rows_[i].last = i + 1 == rows ? columns : std::min(columns, diagonal + width);
            rows_[i].offset = rows_[i - 1].offset + rows_[i - 1].last - rows_[i - 1].first;
        }
        const std::size_t cells = rows_.back().offset + rows_.back().last - rows_.back().first;
        costs_.assign(cells, infinite);
        trial_.assign(cells, infinite);
        operations_.assign(cells, operation::insert);
        for (std::size_t j = 0; j < columns; ++j) costs_[j] = static_cast<std::uint32_t>(j);
    }

    std::size_t distance() const { return costs_.back(); }

    // Of equal costs, the first of replace (or keep), remove, insert.
    void fill_row(std::size_t i, std::uint32_t word, const std::uint32_t* above, std::uint32_t* costs,
                  operation* operations) const
    {
        const row& here = rows_[i];
        const row& before = rows_[i - 1];
        const auto cost_above = [&](std::size_t j) {
            return j < before.first || j >= before.last ? infinite : above[j - before.first];
        };
        for (std::size_t j = here.first; j < here.last; ++j) {
            std::uint32_t best = infinite;
            operation how = operation::replace;
            if (j > 0) best = cost_above(j - 1) + (word == reference_[j - 1] ? 0u : 1u);
            if (const std::uint32_t cost = cost_above(j) + 1; cost < best) {
                best = cost;
                how = operation::remove;
            }
            if (j > here.first && costs[j - 1 - here.first] + 1 < best) {
                best = costs[j - 1 - here.first] + 1;
                how = operation::insert;
            }
            costs[j - here.first] = std::min(best, infinite);
            if (operations != nullptr) operations[j - here.first] = how;
        }
    }

    // The distance of the words in their current order, and the alignment: the position of each reference word, and the
    // errors.
    void fill()
    {
        for (std::size_t i = 1; i < rows_.size(); ++i)
            fill_row(i, words_[i - 1], &costs_[rows_[i - 1].offset], &costs_[rows_[i].offset],
                     &operations_[rows_[i].offset]);

        aligned_.assign(reference_.size(), 0);
        wrong_words_.assign(words_.size() + 1, 0);
        wrong_references_.assign(reference_.size() + 1, 0);
        for (std::size_t i = words_.size(), j = reference_.size(); i > 0 || j > 0;) {
            const operation how = i == 0 ? operation::insert : operations_[rows_[i].offset + j - rows_[i].first];
            // One past the word aligned with the reference word, or after which it is missing.
            if (how != operation::remove) aligned_[j - 1] = i;
            if (how == operation::replace && words_[i - 1] != reference_[j - 1])
                wrong_words_[i] = wrong_references_[j] = 1;
            if (how == operation::remove) wrong_words_[i] = 1;
            if (how == operation::insert) wrong_references_[j] = 1;
            if (how != operation::insert) --i;
            if (how != operation::remove) --j;
        }
        for (std::size_t i = 1; i < wrong_words_.size(); ++i) wrong_words_[i] += wrong_words_[i - 1];
        for (std::size_t j = 1; j < wrong_references_.size(); ++j) wrong_references_[j] += wrong_references_[j - 1];
    }

    // The distance after a shift. The words before both positions and their rows are unchanged. After both positions,
    // once all cells of a row differ by the same number, the same holds for all later rows.
    std::int64_t gain_of(const shift& moved)
    {
        shifted_ = words_;
        const std::size_t end = move(shifted_, moved);
        const std::size_t same = std::min(moved.from, moved.to);
        constexpr std::size_t now_and_then = 16;  // rows
        for (std::size_t i = same + 1; i < rows_.size(); ++i) {
            const std::vector<std::uint32_t>& above = i == same + 1 ? costs_ : trial_;
            fill_row(i, shifted_[i - 1], &above[rows_[i - 1].offset], &trial_[rows_[i].offset], nullptr);
            if (i < end || (i - end) % now_and_then != 0) continue;
            if (const auto gain = gain_of_row(i)) return *gain;
        }
        return static_cast<std::int64_t>(costs_.back()) - static_cast<std::int64_t>(trial_.back());
    }

    // The difference of all cells of a row from their previous values, if it is the same for all.
    std::optional<std::int64_t> gain_of_row(std::size_t i) const
    {
        std::optional<std::int64_t> gain;
        for (std::size_t cell = rows_[i].offset; cell < rows_[i].offset + rows_[i].last - rows_[i].first; ++cell) {
            if (costs_[cell] == infinite && trial_[cell] == infinite) continue;
            if (costs_[cell] == infinite || trial_[cell] == infinite) return std::nullopt;
            const auto here = static_cast<std::int64_t>(costs_[cell]) - static_cast<std::int64_t>(trial_[cell]);
            if (gain.value_or(here) != here) return std::nullopt;
            gain = here;
        }
        return gain;
    }

    // Returns the row from which the words are unchanged.
    static std::size_t move(std::vector<std::uint32_t>& words, const shift& moved)
    {
        const auto at = [&](std::size_t i) { return words.begin() + static_cast<std::ptrdiff_t>(i); };
        const std::size_t end = moved.from + moved.length;
        if (moved.to < moved.from) {
            std::rotate(at(moved.to), at(moved.from), at(end));
            return end;
        }
        // A position inside the phrase means that distance to the right.
        const std::size_t last = std::min(words.size(), moved.to > end ? moved.to : moved.to + moved.length);
        std::rotate(at(moved.from), at(end), at(last));
        return last;
    }

    std::optional<shift> best_shift()
    {
        std::optional<shift> best;
        for (std::size_t from = 0; from < words_.size(); ++from) {
            const std::size_t begin = from > farthest_shift ? from - farthest_shift : 0;
            const std::size_t end = std::min(reference_.size(), from + farthest_shift + 1);
            for (std::size_t place = begin; place < end; ++place) {
                for (std::size_t length = 1; length <= longest_shift; ++length) {
                    if (from + length > words_.size() || place + length > reference_.size() ||
                        words_[from + length - 1] != reference_[place + length - 1])
                        break;
                    try_shifts(from, place, length, best);
                    if (candidates_ >= most_candidates) return best;
                }
            }
        }
        return best;
    }

    // Moves a phrase that the reference has at `place` next to the words aligned with the neighbors of that position.
    // Skips phrases without an error on either side, and moves to the current position.
    void try_shifts(std::size_t from, std::size_t place, std::size_t length, std::optional<shift>& best)
    {
        if (wrong_words_[from + length] == wrong_words_[from]) return;
        if (wrong_references_[place + length] == wrong_references_[place]) return;
        if (aligned_[place] > from && aligned_[place] <= from + length) return;
        std::optional<std::size_t> last;
        for (std::size_t step = 0; step <= length; ++step) {
            const std::size_t to = place + step == 0 ? 0 : aligned_[place + step - 1];
            if (last == to) continue;
            last = to;
            shift candidate{0, length, from, to};
            candidate.gain = gain_of(candidate);
            ++candidates_;
            if (!best || candidate.better_than(*best)) best = candidate;
        }
    }

    std::vector<std::uint32_t> words_, reference_, shifted_;
    std::vector<row> rows_;
    std::vector<std::uint32_t> costs_, trial_;
    std::vector<operation> operations_;
    std::vector<std::size_t> aligned_, wrong_words_, wrong_references_;  // the last two: counts up to here
    std::size_t candidates_ = 0;
};

}  // namespace detail

/// The edits between two sentences, counted as by tercom and sacrebleu: phrases of at most 10 words move at most 50
/// positions, at most 1000 moves are tried, and the edit distance covers 25 words on each side of the diagonal. The
/// time is linear in the longer sentence, times these limits. Words are compared as given; tercom lowercases them by
/// default.
inline ter_counts ter_edits(std::span<const std::string> hypothesis, std::span<const std::string> reference)
{
    detail::word_numbers numbers;
    std::vector<std::uint32_t> words = numbers(hypothesis);
    return detail::ter_search(std::move(words), numbers(reference)).run();
}

/// As above with several references: the edits are those for the reference with the fewest edits (the first of equals),
/// and the length is the mean of all references (Snover et al. 2006). Empty references are ignored if another has words
/// (metrics/references.hpp). Throws heed::error if there is no reference.
inline ter_counts ter_edits(std::span<const std::string> hypothesis, std::span<const text::sentence> references)
{
    std::optional<ter_counts> best;
    double words = 0, present = 0;
    detail::for_each_reference("ter", references, [&](const text::sentence& each) {
        const ter_counts edits = ter_edits(hypothesis, std::span<const std::string>(each));
        words += edits.reference_length;
        present += 1;
        if (!best || edits.edits < best->edits) best = edits;
    });
    best->reference_length = words / present;
    return *best;
}

/// The edits of each sentence, for the bootstrap; computed by heed's threads. Throws heed::error if the numbers of
/// sentences differ.
inline std::vector<ter_counts> ter_statistics(std::span<const text::sentence> hypotheses,
                                              std::span<const text::sentence> references, const progress& seen = {})
{
    detail::require_as_many("ter", hypotheses.size(), references.size());
    return detail::of_each_sentence<ter_counts>(hypotheses.size(), seen,
                                                [&](std::size_t i) { return ter_edits(hypotheses[i], references[i]); });
}

/// As above with several references: one list of sentences per set. Also throws heed::error if there is no set.
inline std::vector<ter_counts> ter_statistics(std::span<const text::sentence> hypotheses,
                                              std::span<const std::vector<text::sentence>> references,
                                              const progress& seen = {})
{
    detail::require_as_many("ter", hypotheses.size(), references);
    return detail::of_each_sentence<ter_counts>(hypotheses.size(), seen, [&](std::size_t i) {
        return ter_edits(hypotheses[i], detail::line_of(references, i));
    });
}

/// Corpus TER in percent: all edits divided by all reference words. Throws heed::error if the numbers of sentences
/// differ.
inline double ter(std::span<const text::sentence> hypotheses, std::span<const text::sentence> references)
{
    ter_counts sum;
    for (const ter_counts& each : ter_statistics(hypotheses, references)) sum += each;
    return ter(sum);
}

}  // namespace heed::inline HEED_TARGET::metrics
