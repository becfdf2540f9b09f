// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/metrics/ngrams.hpp>
#include <heed/metrics/progress.hpp>
#include <heed/metrics/require_as_many.hpp>
#include <heed/text/sentence.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Word error rate, and the share of lines that are wrong. The words may be any tokens: phonemes give the phoneme error
/// rate of a pronunciation, characters the character error rate, and the share of wrong lines is then what the
/// literature on spelling to sound calls the word error rate.
namespace heed::metrics {

/// The statistics of the error rates, of one line or summed over a corpus.
struct error_counts {
    std::size_t edits = 0;             ///< words inserted, deleted or replaced
    std::size_t reference_length = 0;  ///< words
    std::size_t lines = 0;
    std::size_t wrong_lines = 0;  ///< lines that equal none of their references

    error_counts& operator+=(const error_counts& other)
    {
        edits += other.edits;
        reference_length += other.reference_length;
        lines += other.lines;
        wrong_lines += other.wrong_lines;
        return *this;
    }

    /// The share of lines that equal a reference, 0 … 1; 1 without a line.
    double accuracy() const
    {
        return lines == 0 ? 1 : static_cast<double>(lines - wrong_lines) / static_cast<double>(lines);
    }
};

///     WER = 100 · edits / words of the references
///
/// From 0 (identical) up; above 100 if hypotheses are much too long. Edits without any reference word make 100.
inline double error_rate(const error_counts& counts)
{
    if (counts.reference_length == 0) return counts.edits == 0 ? 0 : 100;
    return 100 * static_cast<double>(counts.edits) / static_cast<double>(counts.reference_length);
}

/// The smallest number of words to insert, delete or replace to turn one sentence into the other (Levenshtein 1966).
/// Time |a| |b|, memory of the shorter one.
inline std::size_t edit_distance(std::span<const std::string> a, std::span<const std::string> b)
{
    detail::word_numbers numbers;
    std::vector<std::uint32_t> rows = numbers(a), columns = numbers(b);
    if (columns.size() > rows.size()) rows.swap(columns);
    std::vector<std::size_t> costs(columns.size() + 1);  // of the rows so far and each prefix of the columns
    std::iota(costs.begin(), costs.end(), std::size_t{0});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::size_t diagonal = std::exchange(costs[0], i + 1);
        for (std::size_t j = 0; j < columns.size(); ++j) {
            const std::size_t replaced = diagonal + (rows[i] == columns[j] ? 0 : 1);
            diagonal = costs[j + 1];
            costs[j + 1] = std::min({replaced, diagonal + 1, costs[j] + 1});
        }
    }
    return costs.back();
}

/// The errors of one line.
inline error_counts count_errors(std::span<const std::string> hypothesis, std::span<const std::string> reference)
{
    const std::size_t edits = edit_distance(hypothesis, reference);
    return {edits, reference.size(), 1, edits > 0 ? 1u : 0u};
}

/// The same with several references: those of the one with the fewest edits, of equals the longest. References without
/// a word are left out if another has one, so that lines may differ in how many they have. Throws heed::error if there
/// is none.
inline error_counts count_errors(std::span<const std::string> hypothesis, std::span<const text::sentence> references)
{
    if (references.empty()) throw error("error rate: a hypothesis without a reference; it needs at least one");
    const bool any = std::any_of(references.begin(), references.end(), [](const auto& each) { return !each.empty(); });
    std::optional<error_counts> best;
    for (const text::sentence& each : references) {
        if (any && each.empty()) continue;
        const error_counts errors = count_errors(hypothesis, std::span<const std::string>(each));
        if (!best || errors.edits < best->edits ||
            (errors.edits == best->edits && errors.reference_length > best->reference_length))
            best = errors;
    }
    return *best;
}

/// The errors of each line, as the bootstrap needs them; computed by heed's threads. `references` has one list of lines
/// per set of references. Throws heed::error if there is none, or if the numbers of lines differ.
inline std::vector<error_counts> error_statistics(std::span<const text::sentence> hypotheses,
                                                  std::span<const std::vector<text::sentence>> references,
                                                  const progress& seen = {})
{
    detail::require_as_many("error rate", hypotheses.size(), references);
    return detail::of_each_sentence<error_counts>(hypotheses.size(), seen, [&](std::size_t i) {
        const std::vector<text::sentence> here = detail::line_of(references, i);
        return count_errors(hypotheses[i], std::span<const text::sentence>(here));
    });
}

}  // namespace heed::metrics
