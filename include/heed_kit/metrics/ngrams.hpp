// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed_kit/text/ngrams.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <heed/core/cxx20.hpp>

/// Shared by the n-gram metrics: texts as numbers, and their n-grams.
namespace heed::inline HEED_TARGET::metrics::detail {

using text::for_each_gram;
using text::gram;
using text::gram_hash;

/// Assigns equal words equal numbers, from 1. Refers to the words, which must outlive it or the next clear().
class word_numbers {
public:
    std::vector<std::uint32_t> operator()(std::span<const std::string> words)
    {
        std::vector<std::uint32_t> numbers;
        numbers.reserve(words.size());
        for (const std::string& word : words)
            numbers.push_back(numbers_.emplace(word, static_cast<std::uint32_t>(numbers_.size() + 1)).first->second);
        return numbers;
    }

    void clear() { numbers_.clear(); }
    std::size_t size() const { return numbers_.size(); }

private:
    std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

}  // namespace heed::inline HEED_TARGET::metrics::detail
