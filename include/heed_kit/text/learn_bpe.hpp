// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed_kit/text/bpe.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heed::inline HEED_TARGET::text {

/// Words and their counts.
using word_counts = std::unordered_map<std::string, std::uint64_t>;

/// Adds the words of a corpus. Joint codes for two languages are learned from the counts of both.
inline void count_words(word_counts& counts, std::span<const sentence> corpus)
{
    for (const sentence& line : corpus)
        for (const std::string& word : line) ++counts[word];
}

namespace detail {

/// The symbols of the words in order, and the positions of each pair.
class bpe_learner {
public:
    explicit bpe_learner(const word_counts& counts)
    {
        for (const auto& [word, count] : counts) add(word, count);
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            if (nodes_[i].next != none) more(static_cast<std::uint32_t>(i));
        queue_touched();
    }

    /// The most frequent pair, the largest of equally frequent ones; none (-1) if all are rarer than `least`.
    std::ptrdiff_t best(std::uint64_t least)
    {
        while (!queue_.empty()) {
            const entry top = queue_.front();
            if (top.count < least) break;
            const std::uint64_t now = pairs_[top.pair].count;
            if (now == top.count) return static_cast<std::ptrdiff_t>(top.pair);
            pop();
            // A pair is queued only when its count grows. A decreased count is too high in the queue, so no pair is
            // missed.
            if (now < top.count && now > 0) push(now, top.pair);
        }
        return -1;
    }

    /// Merges a pair into one symbol at all positions, from left to right.
    bpe_merge merge(std::size_t which)
    {
        const std::uint32_t left = pairs_[which].left, right = pairs_[which].right;
        bpe_merge result{symbols_[left], symbols_[right]};
        const std::uint32_t made = number(result.left + result.right);
        std::vector<std::uint32_t> places = std::exchange(pairs_[which].places, {});
        // In order, except in words that contain "</w>".
        std::sort(places.begin(), places.end());
        for (const std::uint32_t i : places) {
            const std::uint32_t next = nodes_[i].next;
            if (nodes_[i].symbol != left || next == none || nodes_[next].symbol != right) continue;  // was already here
            const std::uint32_t previous = nodes_[i].previous, after = nodes_[next].next;
            if (previous != none) fewer(previous);
            fewer(i);
            if (after != none) fewer(next);
            nodes_[i].symbol = made;
            nodes_[i].next = after;
            nodes_[next] = {gone, none, none, 0};
            if (after != none) nodes_[after].previous = i;
            if (previous != none) more(previous);
            if (after != none) more(i);
        }
        queue_touched();
        return result;
    }

private:
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max(), gone = none;

    struct node {
        std::uint32_t symbol, previous, next;
        std::uint64_t count;  // count of the containing word
    };
    struct pair {
        std::uint32_t left, right;
        std::uint64_t count = 0;
        std::vector<std::uint32_t> places = {};  // nodes of left symbols; some may have been merged differently since
        bool touched = false;
    };
    struct entry {
        std::uint64_t count;
        std::size_t pair;
    };

    // Symbols are compared as text: UTF-8 bytes sort in code point order.
    bool worse(const entry& a, const entry& b) const
    {
        if (a.count != b.count) return a.count < b.count;
        if (a.pair == b.pair) return false;
        const pair &x = pairs_[a.pair], &y = pairs_[b.pair];
        return x.left != y.left ? symbols_[x.left] < symbols_[y.left] : symbols_[x.right] < symbols_[y.right];
    }
    void push(std::uint64_t count, std::size_t which)
    {
        queue_.push_back({count, which});
        std::push_heap(queue_.begin(), queue_.end(), [this](const entry& a, const entry& b) { return worse(a, b); });
    }
    void pop()
    {
        std::pop_heap(queue_.begin(), queue_.end(), [this](const entry& a, const entry& b) { return worse(a, b); });
        queue_.pop_back();
    }

    void add(const std::string& word, std::uint64_t count)
    {
        const std::size_t first = nodes_.size();
        if (word.size() >= none - first)
            throw error("byte-pair encoding: the distinct words have more than 2^32 characters in total");
        for (std::size_t position = 0; position < word.size();) {
            const utf8_character character = utf8_at(word, position);
            if (!character.valid)
                throw error("byte-pair encoding: byte " + std::to_string(position + 1) + " of the word \"" +
                            printable(word) + "\" is not valid UTF-8");
            const std::size_t end = position + character.length;
            std::string symbol = word.substr(position, character.length);
            if (end == word.size()) symbol += bpe_end_of_word;
            const auto here = static_cast<std::uint32_t>(nodes_.size());
            nodes_.push_back(
                {number(symbol), position == 0 ? none : here - 1, end == word.size() ? none : here + 1, count});
            position = end;
        }
    }

    std::uint32_t number(const std::string& symbol)
    {
        const auto [at, fresh] = numbers_.try_emplace(symbol, static_cast<std::uint32_t>(symbols_.size()));
        if (fresh) symbols_.push_back(symbol);
        return at->second;
    }

    /// The pair that starts at a node.
    std::size_t pair_at(std::uint32_t i)
    {
        const std::uint32_t left = nodes_[i].symbol, right = nodes_[nodes_[i].next].symbol;
        const auto [at, fresh] = pair_numbers_.try_emplace(std::uint64_t{left} << 32 | right, pairs_.size());
        if (fresh) pairs_.push_back({left, right});
        return at->second;
    }

    void more(std::uint32_t i)
    {
        const std::size_t which = pair_at(i);
        pair& it = pairs_[which];
        it.count += nodes_[i].count;
        it.places.push_back(i);
        if (!std::exchange(it.touched, true)) touched_.push_back(which);
    }

    void fewer(std::uint32_t i) { pairs_[pair_at(i)].count -= nodes_[i].count; }

    void queue_touched()
    {
        for (const std::size_t which : touched_) {
            pairs_[which].touched = false;
            if (pairs_[which].count > 0) push(pairs_[which].count, which);
        }
        touched_.clear();
    }

    std::vector<node> nodes_;
    std::vector<std::string> symbols_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
    std::vector<pair> pairs_;
    std::unordered_map<std::uint64_t, std::size_t> pair_numbers_;
    std::vector<std::size_t> touched_;  // pairs with increased counts
    std::vector<entry> queue_;          // a heap
};

}  // namespace detail

/// Learns at most `merges` merges: repeatedly, the most frequent pair of neighboring symbols becomes one symbol. Of
/// equally frequent pairs, the largest is chosen, by its left symbol, then by its right one (as text). Pairs with
/// counts below `least` are not merged. Returns the same codes as subword-nmt: see bpe_codes.
///
/// Only the neighbors of a merge are recounted, so the time depends on the size of the text and hardly on the number of
/// merges. The result depends only on the counts. Throws heed::error if a word is not UTF-8 or there are no words.
///
///     word_counts words;
///     count_words(words, english);
///     count_words(words, german);            // joint; or learn from each separately
///     bpe_codes codes = learn_bpe(words, 10000);
inline bpe_codes learn_bpe(const word_counts& words, std::size_t merges, std::uint64_t least = 2)
{
    if (words.empty()) throw error("byte-pair encoding: no words to learn from; at least one is required");
    detail::bpe_learner learner(words);
    std::vector<bpe_merge> learned;
    while (learned.size() < merges) {
        const std::ptrdiff_t best = learner.best(std::max<std::uint64_t>(least, 1));
        if (best < 0) break;
        learned.push_back(learner.merge(static_cast<std::size_t>(best)));
    }
    return bpe_codes(std::move(learned));
}

}  // namespace heed::inline HEED_TARGET::text
