// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

/// Finds the parts of a text that occur elsewhere in it, in nearly linear time. A failed model may repeat a word a
/// thousand times, and a metric that compares each pair of positions word by word would take very long.
namespace heed::inline HEED_TARGET::metrics::detail {

/// The suffixes of a text in lexicographic order, and the lengths of the common prefixes of neighbors.
struct suffix_order {
    std::vector<std::size_t> start;   ///< by rank
    std::vector<std::size_t> common;  ///< number of words that ranks r and r - 1 have in common; 0 for the first
};

/// In time n log² n by doubling (Manber & Myers 1990), with the neighbors of Kasai et al. 2001.
inline suffix_order order_suffixes(std::span<const std::uint32_t> text)
{
    const std::size_t size = text.size();
    suffix_order result{std::vector<std::size_t>(size), std::vector<std::size_t>(size, 0)};
    std::iota(result.start.begin(), result.start.end(), std::size_t{0});
    std::vector<std::size_t> rank(text.begin(), text.end()), next(size);
    for (std::size_t width = 1; size > 0; width *= 2) {
        const auto key = [&](std::size_t i) {
            return std::pair(rank[i], i + width < size ? rank[i + width] + 1 : std::size_t{0});
        };
        std::sort(result.start.begin(), result.start.end(),
                  [&](std::size_t left, std::size_t right) { return key(left) < key(right); });
        std::size_t classes = 0;
        for (std::size_t r = 0; r < size; ++r) {
            if (r > 0 && key(result.start[r - 1]) < key(result.start[r])) ++classes;
            next[result.start[r]] = classes;
        }
        rank.swap(next);
        if (classes + 1 == size) break;
    }
    std::size_t length = 0;
    for (std::size_t i = 0; i < size; ++i) {
        if (rank[i] == 0) {
            length = 0;
            continue;
        }
        const std::size_t other = result.start[rank[i] - 1];
        while (i + length < size && other + length < size && text[i + length] == text[other + length]) ++length;
        result.common[rank[i]] = length;
        if (length > 0) --length;
    }
    return result;
}

/// All parts of a text, as the smallest automaton that accepts them (Blumer et al. 1985): a state represents the parts
/// that end at the same positions.
class suffix_automaton {
public:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    explicit suffix_automaton(std::span<const std::uint32_t> text) : states_(1)
    {
        states_.reserve(2 * text.size() + 1);
        for (std::size_t i = 0; i < text.size(); ++i) append(text[i], i + 1);
    }

    /// The state after one more word; `none` if the text does not contain this part. The empty part is state 0.
    std::size_t step(std::size_t from, std::uint32_t word) const
    {
        const auto& edges = states_[from].edges;
        const auto found = std::lower_bound(edges.begin(), edges.end(), std::pair(word, std::size_t{0}));
        return found != edges.end() && found->first == word ? found->second : none;
    }

    /// The end of the first occurrence of the parts of a state, in words from the beginning.
    std::size_t first_end(std::size_t at) const { return states_[at].first_end; }

private:
    struct state {
        std::vector<std::pair<std::uint32_t, std::size_t>> edges;  // by word
        std::size_t length = 0;                                    // length of the longest part
        std::size_t link = none;  // link to its longest suffix that also ends elsewhere
        std::size_t first_end = 0;
    };

    void set_edge(std::size_t from, std::uint32_t word, std::size_t to)
    {
        auto& edges = states_[from].edges;
        const auto found = std::lower_bound(edges.begin(), edges.end(), std::pair(word, std::size_t{0}));
        if (found != edges.end() && found->first == word)
            found->second = to;
        else
            edges.insert(found, {word, to});
    }

    void append(std::uint32_t word, std::size_t end)
    {
        const std::size_t added = states_.size();
        states_.push_back({{}, end, 0, end});
        std::size_t from = last_;
        last_ = added;
        for (; from != none && step(from, word) == none; from = states_[from].link) set_edge(from, word, added);
        if (from == none) return;
        const std::size_t old = step(from, word);
        if (states_[old].length == states_[from].length + 1) {
            states_[added].link = old;
            return;
        }
        // The shorter parts of this state now also end here; the longer parts do not.
        const std::size_t shorter = states_.size();
        state copy = states_[old];
        copy.length = states_[from].length + 1;
        states_.push_back(std::move(copy));
        for (; from != none && step(from, word) == old; from = states_[from].link) set_edge(from, word, shorter);
        states_[old].link = states_[added].link = shorter;
    }

    std::vector<state> states_;
    std::size_t last_ = 0;
};

}  // namespace heed::inline HEED_TARGET::metrics::detail
