// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/alignment_error.hpp>
#include <heed_kit/metrics/require_as_many.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

/// Two aligners align a sentence pair in opposite directions, and each links a word on one side to at most one word.
/// Links in both alignments are nearly always right; the methods differ in the other links they add.
namespace heed::inline HEED_TARGET::metrics {

/// Methods for merging two alignments. The strict methods are another common interpretation of the same names (NLTK's,
/// and that of the baselines in github.com/lilt/alignment-scripts): fewer links with higher precision.
enum class symmetrization {
    intersection,            ///< links in both: high precision
    all,                     ///< links in either (union): high recall, low precision
    grow_diag,               ///< from the intersection, add neighboring links if either word is unlinked
    grow_diag_final,         ///< then any link of either alignment if either word is unlinked
    grow_diag_final_and,     ///< then only links of which both words are unlinked
    grow_diag_strict,        ///< grow_diag, but only links of which both words are unlinked
    grow_diag_final_strict,  ///< then all other such links
};

/// The methods and their names.
inline constexpr std::array<std::pair<std::string_view, symmetrization>, 7> symmetrizations{{
    {"intersection", symmetrization::intersection},
    {"union", symmetrization::all},
    {"grow-diag", symmetrization::grow_diag},
    {"grow-diag-final", symmetrization::grow_diag_final},
    {"grow-diag-final-and", symmetrization::grow_diag_final_and},
    {"grow-diag-strict", symmetrization::grow_diag_strict},
    {"grow-diag-final-strict", symmetrization::grow_diag_final_strict},
}};

/// The method with this name. Throws heed::error listing the names.
inline symmetrization symmetrization_named(std::string_view name)
{
    std::string names;
    for (const auto& [known, method] : symmetrizations) {
        if (known == name) return method;
        names += (names.empty() ? "" : ", ") + std::string(known);
    }
    throw error("symmetrization \"" + std::string(name) + "\" is not known; choose from " + names);
}

/// Links in the opposite direction: (i, j) -> (j, i).
inline links flipped(links list)
{
    for (auto& [i, j] : list) std::swap(i, j);
    return list;
}

/// Merges two alignments, both in source-target direction (see flipped()); the result is sorted, without duplicates.
///
/// Growing follows Koehn, Och & Marcu 2003 in the order of Moses' pseudo-code: go through the links in source order,
/// and through the eight neighbors of each (adjacent ones first, diagonals last); add neighbors in the union if either
/// word is unlinked; repeat while links are added. A rejected link stays rejected, since words are never unlinked, so
/// each link is considered once: time n log n for any positions.
inline links symmetrize(links forward, links reverse, symmetrization method)
{
    const auto make_set = [](links& list) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    };
    make_set(forward);
    make_set(reverse);
    links both, either;
    std::set_intersection(forward.begin(), forward.end(), reverse.begin(), reverse.end(), std::back_inserter(both));
    std::set_union(forward.begin(), forward.end(), reverse.begin(), reverse.end(), std::back_inserter(either));
    if (method == symmetrization::intersection) return both;
    if (method == symmetrization::all) return either;

    using enum symmetrization;
    const bool final = method != grow_diag && method != grow_diag_strict;
    const bool grow_first_of_both = method == grow_diag_strict || method == grow_diag_final_strict;
    const bool final_first_of_both = method == grow_diag_final_and || method == grow_diag_final_strict;

    std::set<std::pair<int, int>> result(both.begin(), both.end());
    std::unordered_set<int> sources, targets;  // linked words
    for (const auto& [i, j] : both) {
        sources.insert(i);
        targets.insert(j);
    }
    const auto welcome = [&](const std::pair<int, int>& link, bool first_of_both) {
        const bool source = !sources.contains(link.first), target = !targets.contains(link.second);
        return first_of_both ? source && target : source || target;
    };
    const auto take = [&](const std::pair<int, int>& link) {
        sources.insert(link.first);
        targets.insert(link.second);
        return result.insert(link).second;
    };

    constexpr std::array<std::pair<int, int>, 8> neighbors{
        {{-1, 0}, {0, -1}, {1, 0}, {0, 1}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}}};
    for (std::set<std::pair<int, int>> round = result, next; !round.empty(); round.swap(next), next.clear()) {
        while (!round.empty()) {
            const auto at = *round.begin();
            round.erase(round.begin());
            for (const auto& [down, right] : neighbors) {
                // Positions may be the largest int: adding one must not overflow.
                const std::int64_t i = std::int64_t{at.first} + down, j = std::int64_t{at.second} + right;
                if (i < 0 || j < 0) continue;
                const std::pair<int, int> link(static_cast<int>(i), static_cast<int>(j));
                if (link.first != i || link.second != j) continue;
                if (!welcome(link, grow_first_of_both)) continue;
                if (!std::binary_search(either.begin(), either.end(), link)) continue;
                if (take(link)) (link > at ? round : next).insert(link);
            }
        }
    }

    if (final) {
        for (const links* const list : {&forward, &reverse})
            for (const auto& link : *list)
                if (welcome(link, final_first_of_both)) take(link);
    }
    return {result.begin(), result.end()};
}

/// As above for each sentence pair of a corpus. Throws heed::error if the numbers of alignments differ.
inline std::vector<links> symmetrize(std::span<const links> forward, std::span<const links> reverse,
                                     symmetrization method)
{
    if (forward.size() != reverse.size())
        throw error("symmetrize: " + counted(forward.size(), "forward alignment") + " but " +
                    counted(reverse.size(), "reverse alignment") + "; expected one of each per sentence pair");
    std::vector<links> result;
    result.reserve(forward.size());
    for (std::size_t i = 0; i < forward.size(); ++i) result.push_back(symmetrize(forward[i], reverse[i], method));
    return result;
}

}  // namespace heed::inline HEED_TARGET::metrics
