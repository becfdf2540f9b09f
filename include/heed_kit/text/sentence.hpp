// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed::inline HEED_TARGET::text {

/// A tokenized sentence: its words, in order.
using sentence = std::vector<std::string>;

/// The bytes that separate tokens. ASCII only: a no-break space (U+00A0) is part of its token.
constexpr bool is_separator(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

/// Calls each(word) for the words of a line, in order: "a b\tc" has "a", "b" and "c". Any run of ASCII white space
/// separates tokens; no token is empty.
template <class Each>
void for_each_word(std::string_view line, const Each& each)
{
    std::size_t position = 0;
    while (position < line.size()) {
        if (is_separator(line[position])) {
            ++position;
            continue;
        }
        const std::size_t begin = position;
        while (position < line.size() && !is_separator(line[position])) ++position;
        each(line.substr(begin, position - begin));
    }
}

/// "a b\tc" -> {"a", "b", "c"}. Any run of ASCII white space separates tokens; no token is empty.
inline sentence split(std::string_view line)
{
    sentence words;
    for_each_word(line, [&](std::string_view word) { words.emplace_back(word); });
    return words;
}

/// {"a", "b"} -> "a b".
inline std::string join(std::span<const std::string> words, std::string_view between = " ")
{
    std::string line;
    for (const std::string& word : words) {
        if (&word != words.data()) line += between;
        line += word;
    }
    return line;
}

}  // namespace heed::inline HEED_TARGET::text
