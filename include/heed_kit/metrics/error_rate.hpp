// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/ngrams.hpp>
#include <heed_kit/metrics/progress.hpp>
#include <heed_kit/metrics/references.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Word error rate, and the share of wrong lines. Words may be any tokens: phonemes give the phoneme error rate of a
/// pronunciation, characters the character error rate. The share of wrong lines is then the word error rate in the
/// literature on grapheme-to-phoneme conversion.
namespace heed::inline HEED_TARGET::metrics {

/// The statistics of the error rates, of one line or summed over a corpus.
struct error_counts {
    std::size_t edits = 0;             ///< words inserted, deleted or replaced
    std::size_t reference_length = 0;  ///< words
    std::size_t lines = 0;
    std::size_t wrong_lines = 0;  ///< lines that match no reference

    error_counts& operator+=(const error_counts& other)
    {
        edits += other.edits;
        reference_length += other.reference_length;
        lines += other.lines;
        wrong_lines += other.wrong_lines;
        return *this;
    }

    /// The share of lines that match a reference, 0 … 1; 1 without lines.
    double accuracy() const
    {
        return lines == 0 ? 1 : static_cast<double>(lines - wrong_lines) / static_cast<double>(lines);
    }
};

///     WER = 100 · edits / words of the references
///
/// 0 if identical; may exceed 100 if hypotheses are much too long. 100 if there are edits but no reference words.
inline double error_rate(const error_counts& counts)
{
    if (counts.reference_length == 0) return counts.edits == 0 ? 0 : 100;
    return 100 * static_cast<double>(counts.edits) / static_cast<double>(counts.reference_length);
}

namespace detail {

/// The matrix of edit distances between the prefixes of two sentences, column by column, in a band around its diagonal
/// and 64 rows at a time: bit r of a block encodes the change of the distance from row r - 1 to row r (Myers 1999, for
/// blocks Hyyrö 2003). A distance of at most k never leaves the band of k rows to each side of the diagonal, and
/// outside it the distance is assumed to grow by 1 per row or column, which never underestimates it: a result of at
/// most k is exact (Ukkonen 1985).
class edit_band {
public:
    /// Words as numbers below `words`; `rows` has at least one word and at most as many as `columns`.
    edit_band(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> columns, std::size_t words)
        : rows_(rows.size()),
          columns_(columns),
          blocks_((rows.size() + 63) / 64),
          begin_(words + 1, 0),
          bits_of_(words, none),
          places_(rows.size()),
          plus_(blocks_),
          minus_(blocks_),
          equal_(blocks_, 0)
    {
        for (const std::uint32_t word : rows) ++begin_[word + 1];
        for (std::size_t word = 0; word < words; ++word) begin_[word + 1] += begin_[word];
        std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
        for (std::size_t i = 0; i < rows.size(); ++i) places_[next[rows[i]]++] = i;
        // The bits of words that occur in many blocks are precomputed. Such words are few: their bits take at most as
        // much memory as the rows.
        for (std::size_t word = 0; word < words; ++word) {
            if (begin_[word + 1] - begin_[word] < std::max(blocks_, std::size_t{1})) continue;
            bits_of_[word] = bits_.size();
            bits_.resize(bits_.size() + blocks_, 0);
            for (std::size_t k = begin_[word]; k < begin_[word + 1]; ++k)
                bits_[bits_of_[word] + places_[k] / 64] |= bit(places_[k]);
        }
    }

    /// The maximum number of block steps of within(k).
    std::uint64_t steps(std::size_t k) const
    {
        return static_cast<std::uint64_t>(columns_.size()) * std::min(blocks_, 2 * k / 64 + 2);
    }

    /// The distance if it is at most k, otherwise a number above k. `k` is at least the difference of the lengths.
    /// `seen(columns)` is called occasionally with the number of completed columns.
    template <class Seen>
    std::size_t within(std::size_t k, const Seen& seen)
    {
        std::size_t last = std::min(rows_ - 1, k) / 64;  // lowest block of the band
        std::size_t bottom = 64 * (last + 1);            // distance in its last row
        std::fill(plus_.begin(), plus_.end(), ~std::uint64_t{0});
        std::fill(minus_.begin(), minus_.end(), std::uint64_t{0});
        for (std::size_t j = 0; j < columns_.size(); ++j) {
            const std::size_t first = (j > k ? std::min(j - k, rows_ - 1) : 0) / 64;
            const std::size_t wanted = std::min(rows_ - 1, j + k) / 64;
            for (; last < wanted; ++last) bottom += 64;  // the rows of a new block: each increases by 1
            const std::uint64_t* const equal = equal_rows(columns_[j], first, last);
            int change = 1;  // from the previous column, in the row above the block
            for (std::size_t block = first; block <= last; ++block) change = step(block, equal[block], change);
            forget(columns_[j], first, last);
            bottom = change < 0 ? bottom - 1 : bottom + static_cast<std::size_t>(change);
            if ((j + 1) % 4096 == 0 || j + 1 == columns_.size()) seen(j + 1);
        }
        // Rows of the last block beyond the end of the sentence.
        const std::uint64_t beyond = rows_ % 64 == 0 ? 0 : ~std::uint64_t{0} << rows_ % 64;
        return bottom - static_cast<std::size_t>(std::popcount(plus_.back() & beyond)) +
               static_cast<std::size_t>(std::popcount(minus_.back() & beyond));
    }

private:
    static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

    static std::uint64_t bit(std::size_t row) { return std::uint64_t{1} << row % 64; }

    /// The positions of a word in the blocks of the band.
    std::span<const std::size_t> places_in(std::uint32_t word, std::size_t first, std::size_t last) const
    {
        const auto at = [&](std::size_t k) { return places_.begin() + static_cast<std::ptrdiff_t>(k); };
        const auto begin = std::lower_bound(at(begin_[word]), at(begin_[word + 1]), 64 * first);
        return {begin, std::lower_bound(begin, at(begin_[word + 1]), 64 * (last + 1))};
    }

    /// The rows with this word, as bits of each block from first to last.
    const std::uint64_t* equal_rows(std::uint32_t word, std::size_t first, std::size_t last)
    {
        if (bits_of_[word] != none) return &bits_[bits_of_[word]];
        for (const std::size_t place : places_in(word, first, last)) equal_[place / 64] |= bit(place);
        return equal_.data();
    }
    void forget(std::uint32_t word, std::size_t first, std::size_t last)
    {
        if (bits_of_[word] != none) return;
        for (const std::size_t place : places_in(word, first, last)) equal_[place / 64] = 0;
    }

    /// The next column of a block. `change`: the change of the distance in the row above it, from the previous column
    /// to this one; returns the change in its last row.
    int step(std::size_t block, std::uint64_t equal, int change)
    {
        const std::uint64_t plus = plus_[block], minus = minus_[block];
        const std::uint64_t vertical = equal | minus;
        if (change < 0) equal |= 1;
        const std::uint64_t horizontal = (((equal & plus) + plus) ^ plus) | equal;
        std::uint64_t more = minus | ~(horizontal | plus), fewer = plus & horizontal;
        const int result = static_cast<int>(more >> 63) - static_cast<int>(fewer >> 63);
        more = more << 1 | (change > 0 ? 1u : 0u);
        fewer = fewer << 1 | (change < 0 ? 1u : 0u);
        plus_[block] = fewer | ~(vertical | more);
        minus_[block] = more & vertical;
        return result;
    }

    std::size_t rows_;
    std::span<const std::uint32_t> columns_;
    std::size_t blocks_;
    std::vector<std::size_t> begin_, bits_of_, places_;  // for each word: its positions, and its bits if precomputed
    std::vector<std::uint64_t> bits_, plus_, minus_, equal_;
};

/// About five minutes: sentences of over a million words with little in common.
inline constexpr std::uint64_t most_edit_steps = 50'000'000'000;

}  // namespace detail

/// The minimum number of insertions, deletions and replacements of words that turn one sentence into the other
/// (Levenshtein 1966). Time |a| · d / 64 for a distance of d (at most |a| |b| / 64), memory linear in the words. Throws
/// heed::error if that would take too long, for millions of words with little in common. `seen` receives the completed
/// and the total number of steps; the total may grow if the sentences differ much.
inline std::size_t edit_distance(std::span<const std::string> a, std::span<const std::string> b,
                                 const progress& seen = {}, std::uint64_t most_steps = detail::most_edit_steps)
{
    const std::size_t same_begin =
        static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    a = a.subspan(same_begin);
    b = b.subspan(same_begin);
    const std::size_t same_end =
        static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
    a = a.first(a.size() - same_end);
    b = b.first(b.size() - same_end);
    if (a.empty() || b.empty()) return a.size() + b.size();
    if (a.size() > b.size()) std::swap(a, b);
    detail::word_numbers numbers;
    const std::vector<std::uint32_t> rows = numbers(a), columns = numbers(b);
    detail::edit_band band(rows, columns, numbers.size() + 1);
    std::uint64_t done = 0;
    for (std::size_t k = std::max(b.size() - a.size(), std::size_t{64});; k *= 2) {
        const std::uint64_t steps = band.steps(k);
        if (done + steps > most_steps)
            throw error("error rate: sentences of " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
                        " words" + (same_begin + same_end > 0 ? ", without the common beginning and end," : "") +
                        " that differ in more than " + std::to_string(k / 2) +
                        " take too long to compare; split them into shorter ones, one per line");
        const std::size_t distance = band.within(k, [&](std::size_t column) {
            if (seen) seen(done + steps / b.size() * column, done + steps / b.size() * b.size());
        });
        if (distance <= k) return distance;
        done += steps / b.size() * b.size();
    }
}

/// The errors of one line. Throws heed::error as edit_distance() does.
inline error_counts count_errors(std::span<const std::string> hypothesis, std::span<const std::string> reference,
                                 const progress& seen = {})
{
    const std::size_t edits = edit_distance(hypothesis, reference, seen);
    return {edits, reference.size(), 1, edits > 0 ? 1u : 0u};
}

/// As above with several references: the errors for the reference with the fewest edits; of equals, the longest. Empty
/// references are ignored if another has words (metrics/references.hpp). Throws heed::error if there is no reference.
inline error_counts count_errors(std::span<const std::string> hypothesis, std::span<const text::sentence> references,
                                 const progress& seen = {})
{
    std::optional<error_counts> best;
    detail::for_each_reference("error rate", references, [&](const text::sentence& each) {
        const error_counts errors = count_errors(hypothesis, std::span<const std::string>(each), seen);
        if (!best || errors.edits < best->edits ||
            (errors.edits == best->edits && errors.reference_length > best->reference_length))
            best = errors;
    });
    return *best;
}

/// The errors of each line, for the bootstrap; computed by heed's threads. `references` has one list of lines per set
/// of references. Very long lines are processed last, with `seen_steps` as in edit_distance(). Throws heed::error if
/// there is no set, if the numbers of lines differ, and as edit_distance() does.
inline std::vector<error_counts> error_statistics(std::span<const text::sentence> hypotheses,
                                                  std::span<const std::vector<text::sentence>> references,
                                                  const progress& seen = {}, const progress& seen_steps = {})
{
    detail::require_as_many("error rate", hypotheses.size(), references);
    constexpr std::size_t very_long = std::size_t{1} << 16;  // words: a tenth of a second if no words are equal
    const auto later = [&](std::size_t i) {
        if (!seen_steps || hypotheses[i].size() < very_long) return false;
        return std::any_of(references.begin(), references.end(),
                           [&](const auto& each) { return each[i].size() >= very_long; });
    };
    const auto judge = [&](std::size_t i, const progress& steps) {
        const std::vector<text::sentence> here = detail::line_of(references, i);
        return count_errors(hypotheses[i], std::span<const text::sentence>(here), steps);
    };
    std::vector<error_counts> result = detail::of_each_sentence<error_counts>(
        hypotheses.size(), seen, [&](std::size_t i) { return later(i) ? error_counts{} : judge(i, {}); });
    for (std::size_t i = 0; i < result.size(); ++i)
        if (later(i)) result[i] = judge(i, seen_steps);
    return result;
}

}  // namespace heed::inline HEED_TARGET::metrics
