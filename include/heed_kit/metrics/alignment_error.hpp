// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/require_as_many.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace heed::inline HEED_TARGET::metrics {

/// Word links (i, j) of one sentence pair: source position i and target position j, both from 0. Treated as a set:
/// order and duplicates are ignored.
using links = std::vector<std::pair<int, int>>;

/// Human links of one sentence pair. A sure link is also possible, whether or not it is listed there.
struct gold_links {
    links sure;
    links possible;
};

/// Compares proposed links A with sure links S and possible links P ⊇ S, summed over a corpus.
///
///     precision = |A∩P| / |A|     recall = |A∩S| / |S|     F1 = 2 · precision · recall / (precision + recall)
///     AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|)                           Och & Ney 2003
///
/// The ratio 0/0 counts as perfect: 1 for precision and recall, 0 for the AER.
struct alignment_score {
    std::size_t proposed = 0;           ///< |A|
    std::size_t sure = 0;               ///< |S|
    std::size_t proposed_sure = 0;      ///< |A∩S|
    std::size_t proposed_possible = 0;  ///< |A∩P|

    double precision() const { return ratio(proposed_possible, proposed); }
    double recall() const { return ratio(proposed_sure, sure); }
    /// The harmonic mean of precision and recall.
    double f1() const
    {
        const double sum = precision() + recall();
        return sum > 0 ? 2 * precision() * recall() / sum : 0;
    }
    /// Alignment error rate.
    double aer() const { return 1 - ratio(proposed_sure + proposed_possible, proposed + sure); }

    /// Adds one sentence pair.
    void add(links proposal, gold_links gold)
    {
        make_set(proposal);
        make_set(gold.sure);
        gold.possible.insert(gold.possible.end(), gold.sure.begin(), gold.sure.end());
        make_set(gold.possible);
        proposed += proposal.size();
        sure += gold.sure.size();
        for (const auto& link : proposal) {
            proposed_sure += std::binary_search(gold.sure.begin(), gold.sure.end(), link) ? 1u : 0u;
            proposed_possible += std::binary_search(gold.possible.begin(), gold.possible.end(), link) ? 1u : 0u;
        }
    }

private:
    static double ratio(std::size_t part, std::size_t whole)
    {
        return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
    }

    static void make_set(links& list)
    {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
};

/// The score of a corpus. Throws heed::error if the numbers of proposals and gold alignments differ.
inline alignment_score alignment_error(std::span<const links> proposals, std::span<const gold_links> gold)
{
    if (proposals.size() != gold.size())
        throw error("alignment_error: " + counted(proposals.size(), "proposed alignment") + " but " +
                    counted(gold.size(), "gold alignment") + "; expected one of each per sentence pair");
    alignment_score score;
    for (std::size_t i = 0; i < gold.size(); ++i) score.add(proposals[i], gold[i]);
    return score;
}

/// Reads one line of word links in Pharaoh's notation: "0-0 2-1 3p1", `i-j` sure, `ipj` possible only. Throws
/// heed::error for invalid text; `where` begins its message, as in "gold.txt:12".
inline gold_links parse_gold(std::string_view line, std::string_view where = "alignment")
{
    gold_links result;
    for (const std::string& token : text::split(line)) {
        int i = -1, j = -1;
        const char* const end = token.data() + token.size();
        const auto first = std::from_chars(token.data(), end, i);
        const char kind = first.ptr < end ? *first.ptr : '\0';
        // from_chars would accept a sign, but "0--1" is not a link.
        const bool good = first.ec == std::errc{} && i >= 0 && (kind == '-' || kind == 'p') && first.ptr + 1 < end &&
                          first.ptr[1] != '-' && token.front() != '-';
        const auto second = good ? std::from_chars(first.ptr + 1, end, j) : first;
        if (!good || second.ec != std::errc{} || second.ptr != end)
            throw error(std::string(where) + ": \"" + token +
                        "\" is not a link; expected i-j (sure) or ipj (possible), positions from 0");
        (kind == '-' ? result.sure : result.possible).emplace_back(i, j);
    }
    return result;
}

/// Reads a line of sure links: "0-0 2-1". Throws heed::error for invalid text, including possible links.
inline links parse_links(std::string_view line, std::string_view where = "alignment")
{
    gold_links result = parse_gold(line, where);
    if (!result.possible.empty())
        throw error(std::string(where) + ": " + std::to_string(result.possible.front().first) + "p" +
                    std::to_string(result.possible.front().second) + " is a possible link; only i-j is allowed here");
    return std::move(result.sure);
}

/// "0-0 2-1 3p1": the links in Pharaoh's notation, in the given order, sure ones first. Throws heed::error for a
/// negative position, which parse_gold() rejects.
inline std::string pharaoh(const links& sure, const links& possible = {})
{
    std::string line;
    const auto print = [&line](const links& list, char kind) {
        for (const auto& [i, j] : list) {
            if (i < 0 || j < 0)
                throw error("pharaoh: the link " + std::to_string(i) + kind + std::to_string(j) +
                            "; positions count from 0");
            if (!line.empty()) line += ' ';
            line += std::to_string(i) + kind + std::to_string(j);
        }
    };
    print(sure, '-');
    print(possible, 'p');
    return line;
}

/// For each target word, the source word with the largest weight: the hard alignment of an attention matrix.
/// `weights` is row-major [S,T], S target and T source words. Links below `threshold` are omitted. Throws shape_error
/// unless the rows are complete.
inline links strongest_links(std::span<const float> weights, std::size_t source_length, float threshold = 0)
{
    if (source_length == 0 ? !weights.empty() : weights.size() % source_length != 0)
        throw shape_error("strongest_links: " + std::to_string(weights.size()) + " weights are not complete rows of " +
                          std::to_string(source_length));
    links result;
    for (std::size_t row = 0; row * source_length < weights.size(); ++row) {
        const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(row * source_length);
        const auto best = std::max_element(begin, begin + static_cast<std::ptrdiff_t>(source_length));
        if (*best >= threshold) result.emplace_back(static_cast<int>(best - begin), static_cast<int>(row));
    }
    return result;
}

}  // namespace heed::inline HEED_TARGET::metrics
