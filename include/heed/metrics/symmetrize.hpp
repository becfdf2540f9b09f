// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/metrics/alignment_error.hpp>
#include <heed/metrics/require_as_many.hpp>

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

/// Two aligners look at a sentence pair from either side, and each lets a word of its side have one partner only. What
/// they agree on is nearly always right; where to go from there is a matter of taste, and of these methods.
namespace heed::metrics {

/// How to make one alignment of two. The strict ones are a widespread other reading of the same names (NLTK's, and that
/// of the baselines in github.com/lilt/alignment-scripts): fewer links, more of them right.
enum class symmetrization {
    intersection,            ///< links of both: few and right
    all,                     ///< links of either (union): many, and many wrong
    grow_diag,               ///< from the intersection to neighbouring links that give a word its first partner
    grow_diag_final,         ///< then any link of either that gives a word its first partner
    grow_diag_final_and,     ///< then those only that give both of their words their first partner
    grow_diag_strict,        ///< grow_diag, but only to links that give both of their words their first partner
    grow_diag_final_strict,  ///< then the rest of such links
};

/// The methods by the names that users know.
inline constexpr std::array<std::pair<std::string_view, symmetrization>, 7> symmetrizations{{
    {"intersection", symmetrization::intersection},
    {"union", symmetrization::all},
    {"grow-diag", symmetrization::grow_diag},
    {"grow-diag-final", symmetrization::grow_diag_final},
    {"grow-diag-final-and", symmetrization::grow_diag_final_and},
    {"grow-diag-strict", symmetrization::grow_diag_strict},
    {"grow-diag-final-strict", symmetrization::grow_diag_final_strict},
}};

/// The method of this name. Throws heed::error with the names there are.
inline symmetrization symmetrization_named(std::string_view name)
{
    std::string names;
    for (const auto& [known, method] : symmetrizations) {
        if (known == name) return method;
        names += (names.empty() ? "" : ", ") + std::string(known);
    }
    throw error("symmetrization \"" + std::string(name) + "\" is not known; there are " + names);
}

/// Links the other way round: (i, j) -> (j, i).
inline links flipped(links list)
{
    for (auto& [i, j] : list) std::swap(i, j);
    return list;
}

/// One alignment of two, both in the direction source-target (see flipped()); sorted, without repetition.
///
/// Growing is that of Koehn, Och & Marcu 2003 in the order of Moses' pseudo-code: go through the links in order, source
/// first, and from each to its eight neighbours (beside first, diagonals last); take what the union has and what gives
/// a word its first partner; go through again while something was added. A link once refused stays refused, since words
/// only ever gain partners, so each link is looked at once: time n log n, whatever the positions.
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
    std::unordered_set<int> sources, targets;  // words with a partner
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

    constexpr std::array<std::pair<int, int>, 8> neighbours{
        {{-1, 0}, {0, -1}, {1, 0}, {0, 1}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}}};
    for (std::set<std::pair<int, int>> round = result, next; !round.empty(); round.swap(next), next.clear()) {
        while (!round.empty()) {
            const auto at = *round.begin();
            round.erase(round.begin());
            for (const auto& [down, right] : neighbours) {
                // Positions may be as large as int holds: one more must not overflow.
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

/// The same for each sentence pair of a corpus. Throws heed::error if there are not as many of both.
inline std::vector<links> symmetrize(std::span<const links> forward, std::span<const links> reverse,
                                     symmetrization method)
{
    if (forward.size() != reverse.size())
        throw error("symmetrize: " + detail::counted(forward.size(), "forward alignment", "forward alignments") +
                    " but " + detail::counted(reverse.size(), "reverse one", "reverse ones") +
                    "; each sentence pair needs one of both");
    std::vector<links> result;
    result.reserve(forward.size());
    for (std::size_t i = 0; i < forward.size(); ++i) result.push_back(symmetrize(forward[i], reverse[i], method));
    return result;
}

}  // namespace heed::metrics
