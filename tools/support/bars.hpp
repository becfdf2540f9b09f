// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <heed_kit/text/sentence.hpp>

/// N-best lists and phrase tables separate fields by the word "|||". If a text contains this word, it is written as
/// "&#124;&#124;&#124;", as by Moses' escape-special-chars.perl, and read as "|||". To make this reversible, a text
/// word "&#124;&#124;&#124;" gets one more "amp;": "&amp;#124;&#124;&#124;", and so on. Every other word, "||" and
/// "&#124;" included, is unchanged.
namespace program {

inline constexpr std::string_view bars = "|||";

namespace detail {

/// Whether a word is "&" "amp;" … "amp;" "#124;&#124;&#124;".
inline bool is_written_bars(std::string_view word)
{
    constexpr std::string_view more = "amp;";
    if (!word.starts_with('&')) return false;
    word.remove_prefix(1);
    while (word.starts_with(more)) word.remove_prefix(more.size());
    return word == "#124;&#124;&#124;";
}

}  // namespace detail

/// The escaped form of a word in a field.
inline std::string written_word(std::string_view word)
{
    if (word == bars) return "&#124;&#124;&#124;";
    std::string result(word);
    if (detail::is_written_bars(word)) result.insert(1, "amp;");
    return result;
}

/// The inverse of written_word().
inline std::string read_word(std::string_view word)
{
    if (!detail::is_written_bars(word)) return std::string(word);
    if (!word.starts_with("&amp;")) return std::string(bars);
    return std::string(word).erase(1, 4);
}

/// A line of text with its words escaped; white space is unchanged.
inline std::string written_line(std::string_view line)
{
    std::string result;
    std::size_t done = 0;
    heed::text::for_each_word(line, [&](std::string_view word) {
        const auto begin = static_cast<std::size_t>(word.data() - line.data());
        result += line.substr(done, begin - done);
        result += written_word(word);
        done = begin + word.size();
    });
    return result += line.substr(done);
}

}  // namespace program
