// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heed/core/errors.hpp>

namespace heed::seq2seq::detail {

/// The words that an output layer is restricted to, and their positions in it.
struct word_list {
    std::vector<std::uint32_t> words;  // ascending; empty: no restriction

    /// The positions of these words, one for each row, words.size() for a word that is not listed. nullptr for no words
    /// at all.
    const std::uint32_t* places(std::span<const std::uint32_t> of, std::size_t rows)
    {
        if (of.empty()) return nullptr;
        if (of.size() != rows) {
            throw error("decoding::propose: " + counted(of.size(), "word") + " for " + counted(rows, "row") +
                        "; ask about one word of each row, or about none");
        }
        if (words.empty()) return of.data();
        places_.clear();
        for (const std::uint32_t word : of) {
            const auto found = std::lower_bound(words.begin(), words.end(), word);
            const bool there = found != words.end() && *found == word;
            places_.push_back(static_cast<std::uint32_t>(there ? found - words.begin() : words.end() - words.begin()));
        }
        return places_.data();
    }

    /// Throws for lists that restrict_to does not accept.
    static void require(const std::vector<std::uint32_t>& words, std::size_t vocabulary)
    {
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (words[i] >= vocabulary || (i > 0 && words[i] <= words[i - 1])) {
                throw error("decoding::restrict_to: word " + std::to_string(words[i]) + " in a list of words below " +
                            std::to_string(vocabulary) + "; give them in ascending order, each once");
            }
        }
    }

    void name(std::vector<std::uint32_t>& of) const
    {
        if (words.empty()) return;
        for (std::uint32_t& place : of) {
            if (place < words.size()) place = words[place];
        }
    }

private:
    std::vector<std::uint32_t> places_;
};

}  // namespace heed::seq2seq::detail
