// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heed::inline HEED_TARGET::text {

/// The bytes EF BB BF, which some programs write at the start of a UTF-8 file.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
/// U+FFFD, which replaces invalid UTF-8.
inline constexpr char32_t replacement_character = U'\uFFFD';

/// One step through UTF-8: the character at a position and its number of bytes.
struct utf8_character {
    char32_t code = replacement_character;
    std::size_t length = 1;  // in bytes
    bool valid = false;
};

/// The character that begins at `position`, which must be inside the text. Overlong forms, surrogates, values above
/// U+10FFFF and cut-off sequences are invalid; skip one byte of those.   Unicode 15, table 3-7
constexpr utf8_character utf8_at(std::string_view text, std::size_t position)
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[position + i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return {static_cast<char32_t>(first), 1, true};
    if (first < 0xC2 || first > 0xF4) return {};

    const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (text.size() - position < length) return {};

    // The second byte's range excludes overlong forms (E0, F0), surrogates (ED) and too large values (F4).
    const unsigned lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (byte(1) < lowest || byte(1) > highest) return {};

    std::uint32_t code = first & (0x7Fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0u) != 0x80u) return {};
        code = code << 6 | (byte(i) & 0x3Fu);
    }
    return {static_cast<char32_t>(code), length, true};
}

/// The position (in bytes, from 0) of the first byte that is not valid UTF-8; none if the whole text is valid.
constexpr std::optional<std::size_t> find_invalid_utf8(std::string_view text)
{
    for (std::size_t position = 0; position < text.size();) {
        const utf8_character character = utf8_at(text, position);
        if (!character.valid) return position;
        position += character.length;
    }
    return std::nullopt;
}

/// The text with control characters (which could control the terminal) and invalid bytes replaced with U+FFFD, and
/// without direction overrides: safe to print, and legal in XML once escaped.
inline std::string printable(std::string_view text)
{
    std::string result;
    for (std::size_t position = 0; position < text.size();) {
        const utf8_character character = utf8_at(text, position);
        const char32_t code = character.code;
        const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
                             code == 0xFFFE || code == 0xFFFF;
        const bool override_mark = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
        if (!character.valid || control)
            result += "\xEF\xBF\xBD";
        else if (!override_mark)
            result += text.substr(position, character.length);
        position += character.length;
    }
    return result;
}

}  // namespace heed::inline HEED_TARGET::text
