// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed::inline HEED_TARGET::text {

/// Distinct words, numbered from 0 in order of first occurrence, and their counts. The memory is proportional to the
/// number of distinct words, not to the size of the text: the bytes of the words, and at most 44 bytes per word.
///
///     word_table words;
///     for_each_word(line, [&](std::string_view word) { numbers.push_back(words.see(word)); });
///     words.word(numbers[0]), words.count(numbers[0]);
class word_table {
public:
    word_table() : slots_(1024, none) {}

    /// Counts a word `times` times; returns its number. Throws heed::error if the number of distinct words exceeds 32
    /// bits.
    std::uint32_t see(std::string_view word, std::size_t times = 1)
    {
        const std::uint64_t hash = std::hash<std::string_view>{}(word);
        std::size_t at = hash & (slots_.size() - 1);
        for (; slots_[at] != none; at = (at + 1) & (slots_.size() - 1)) {
            entry& each = entries_[slots_[at]];
            if (each.hash == static_cast<std::uint32_t>(hash >> 32) && this->word(slots_[at]) == word) {
                each.count += times;
                return slots_[at];
            }
        }
        if (entries_.size() >= none || word.size() > none)
            throw error("words: the number of distinct words exceeds 32 bits");
        const auto number = static_cast<std::uint32_t>(entries_.size());
        entries_.push_back(
            {letters_.size(), times, static_cast<std::uint32_t>(word.size()), static_cast<std::uint32_t>(hash >> 32)});
        letters_.insert(letters_.end(), word.begin(), word.end());
        slots_[at] = number;
        if (2 * entries_.size() > slots_.size()) grow();
        return number;
    }

    std::size_t size() const { return entries_.size(); }
    /// The word with this number; valid until the next call of see().
    std::string_view word(std::uint32_t number) const
    {
        return {letters_.data() + entries_[number].begin, entries_[number].length};
    }
    std::size_t count(std::uint32_t number) const { return entries_[number].count; }

private:
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    struct entry {
        std::size_t begin, count;
        std::uint32_t length, hash;  // the upper half; the lower half selected the slot
    };

    void grow()
    {
        std::vector<std::uint32_t> more(2 * slots_.size(), none);
        for (std::uint32_t number = 0; number < entries_.size(); ++number) {
            std::size_t at = std::hash<std::string_view>{}(word(number)) & (more.size() - 1);
            while (more[at] != none) at = (at + 1) & (more.size() - 1);
            more[at] = number;
        }
        slots_ = std::move(more);
    }

    std::vector<entry> entries_;
    std::vector<char> letters_;         // bytes of all words, consecutively
    std::vector<std::uint32_t> slots_;  // by hash, at most half full
};

}  // namespace heed::inline HEED_TARGET::text
