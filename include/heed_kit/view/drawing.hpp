// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>
#include <heed/core/utf8.hpp>
#include <heed_kit/text/display.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

// Shared by all pictures: numbers, escaped text, widths.
namespace heed::inline HEED_TARGET::view::detail {

// Measures in pixels. The widths of words are generous estimates, since no font is available for measuring.
inline constexpr double font = 13, column_width = 7.9, margin = 24;
inline constexpr std::string_view fonts = "'DejaVu Sans', 'Noto Sans', system-ui, sans-serif";

/// A number with this many decimals and a decimal point in every locale.
inline std::string fixed(double value, int digits)
{
    std::array<char, 512> buffer{};  // the largest double has 309 digits before the decimal point
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, digits);
    return {buffer.data(), end.ptr};
}

/// As above; a single decimal 0 is omitted.
inline std::string number(double value, int digits = 1)
{
    std::string text = fixed(value, digits);
    if (digits == 1 && text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
}

/// Text for XML and HTML, between tags or in a double-quoted attribute; without control characters and invalid
/// characters.
inline std::string escaped(std::string_view raw)
{
    std::string result;
    for (const char c : text::printable(raw)) {
        if (c == '&')
            result += "&amp;";
        else if (c == '<')
            result += "&lt;";
        else if (c == '>')
            result += "&gt;";
        else if (c == '"')
            result += "&quot;";
        else
            result += c;
    }
    return result;
}

/// The attributes of a right-to-left SVG text: its start is on the right.
inline std::string direction(std::string_view text)
{
    return text::is_right_to_left(text) ? " direction=\"rtl\" unicode-bidi=\"embed\"" : "";
}

inline double width_of(std::string_view word) { return column_width * static_cast<double>(text::display_width(word)); }

}  // namespace heed::inline HEED_TARGET::view::detail
