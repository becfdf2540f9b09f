// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/utf8.hpp>
#include <heed_kit/text/sentence.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace heed::inline HEED_TARGET::metrics {

namespace detail {

/// White space as in Unicode and Python's str.split(), unlike text::is_separator, which keeps a no-break space in its
/// token.
constexpr bool is_unicode_space(char32_t code)
{
    return code == ' ' || (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x1F) || code == 0x85 ||
           code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
           code == 0x202F || code == 0x205F || code == 0x3000;
}

/// Whether a line contains anything other than Unicode white space.
inline bool has_word(std::string_view line)
{
    for (std::size_t position = 0; position < line.size();) {
        const text::utf8_character character = text::utf8_at(line, position);
        if (!character.valid || !is_unicode_space(character.code)) return true;
        position += character.length;
    }
    return false;
}

/// The words between runs of Unicode white space. An invalid byte is part of its word.
inline text::sentence split_at_unicode_space(std::string_view line)
{
    text::sentence words;
    bool inside = false;
    for (std::size_t position = 0; position < line.size();) {
        const text::utf8_character character = text::utf8_at(line, position);
        const bool space = character.valid && is_unicode_space(character.code);
        if (!space && !inside) words.emplace_back();
        if (!space) words.back() += line.substr(position, character.length);
        inside = !space;
        position += character.length;
    }
    return words;
}

constexpr bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

/// The ASCII punctuation that mteval always makes a token: all except ' , - and the full stop.
constexpr bool always_splits(char byte)
{
    return (byte >= '!' && byte <= '&') || (byte >= '(' && byte <= '+') || byte == '/' ||
           (byte >= ':' && byte <= '@') || (byte >= '[' && byte <= '`') || (byte >= '{' && byte <= '~');
}

constexpr bool is_stop(char byte) { return byte == '.' || byte == ','; }

}  // namespace detail

/// Tokenizes a line as NIST's mteval-v13a and, by default, sacrebleu: punctuation marks become tokens; a full stop or
/// comma does unless it is between digits ("1,000.5"), a hyphen does after a digit; `&quot; &amp; &lt; &gt;` are
/// decoded, `<skipped>` is dropped. Designed for western languages. Case is kept.
///
/// Works on bytes: all affected marks are ASCII, and the bytes of other characters are not digits.
inline text::sentence tokenize_13a(std::string_view line)
{
    std::string text(line);
    constexpr std::array<std::pair<std::string_view, std::string_view>, 5> replacements{
        {{"<skipped>", ""}, {"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}}};
    for (const auto& [from, to] : replacements) {
        // Builds a new text, since replacing in place would move the rest each time.
        std::string replaced;
        std::size_t begin = 0;
        for (std::size_t found; (found = text.find(from, begin)) != text.npos; begin = found + from.size()) {
            replaced.append(text, begin, found - begin);
            replaced += to;
        }
        replaced.append(text, begin);
        text = std::move(replaced);
    }

    std::string spaced = " ";
    for (const char byte : text) {
        if (detail::always_splits(byte))
            ((spaced += ' ') += byte) += ' ';
        else
            spaced += byte;
    }
    spaced += ' ';

    // Each rule is applied to the whole line before the next rule, and its matches do not overlap: ".." after a letter
    // is one token of two full stops.
    const auto pairs = [](const std::string& in, auto&& matches, bool before, bool between, bool after) {
        std::string out;
        for (std::size_t i = 0; i < in.size(); ++i) {
            if (i + 1 == in.size() || !matches(in[i], in[i + 1])) {
                out += in[i];
                continue;
            }
            if (before) out += ' ';
            out += in[i];
            if (between) out += ' ';
            out += in[++i];
            if (after) out += ' ';
        }
        return out;
    };
    using detail::is_digit, detail::is_stop;
    text = pairs(
        spaced, [](char a, char b) { return !is_digit(a) && is_stop(b); }, false, true, true);
    text = pairs(
        text, [](char a, char b) { return is_stop(a) && !is_digit(b); }, true, true, false);
    text = pairs(
        text, [](char a, char b) { return is_digit(a) && b == '-'; }, false, true, true);
    return detail::split_at_unicode_space(text);
}

}  // namespace heed::inline HEED_TARGET::metrics
