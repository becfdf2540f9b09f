// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include <heed/core/utf8.hpp>

/// The display of text: its width in a terminal, and its direction.
namespace heed::inline HEED_TARGET::text {

namespace detail {

struct code_range {
    char32_t first, last;
};

constexpr bool in_ranges(char32_t code, const code_range* begin, const code_range* end)
{
    const code_range* found =
        std::lower_bound(begin, end, code, [](const code_range& range, char32_t c) { return range.last < c; });
    return found != end && found->first <= code;
}

// Marks that combine with the preceding character, and invisible format characters (joiners, bidi marks). A subset of
// Unicode: the scripts of word-aligned corpora.
inline constexpr code_range zero_width_ranges[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x05BF, 0x05BF}, {0x05C1, 0x05C2},   {0x05C4, 0x05C5},
    {0x05C7, 0x05C7}, {0x0610, 0x061A}, {0x064B, 0x065F}, {0x0670, 0x0670}, {0x06D6, 0x06DC},   {0x06DF, 0x06E4},
    {0x06E7, 0x06E8}, {0x06EA, 0x06ED}, {0x0711, 0x0711}, {0x0730, 0x074A}, {0x07A6, 0x07B0},   {0x0900, 0x0902},
    {0x093A, 0x093A}, {0x093C, 0x093C}, {0x0941, 0x0948}, {0x094D, 0x094D}, {0x0951, 0x0957},   {0x0962, 0x0963},
    {0x0981, 0x0981}, {0x09BC, 0x09BC}, {0x09C1, 0x09C4}, {0x09CD, 0x09CD}, {0x0A01, 0x0A02},   {0x0A3C, 0x0A3C},
    {0x0A41, 0x0A51}, {0x0A70, 0x0A71}, {0x0A81, 0x0A82}, {0x0ABC, 0x0ABC}, {0x0AC1, 0x0AC8},   {0x0ACD, 0x0ACD},
    {0x0B82, 0x0B82}, {0x0BC0, 0x0BC0}, {0x0BCD, 0x0BCD}, {0x0C3E, 0x0C40}, {0x0C46, 0x0C56},   {0x0CBC, 0x0CBC},
    {0x0CCC, 0x0CCD}, {0x0D41, 0x0D44}, {0x0D4D, 0x0D4D}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A},   {0x0E47, 0x0E4E},
    {0x0EB1, 0x0EB1}, {0x0EB4, 0x0EBC}, {0x0EC8, 0x0ECE}, {0x1160, 0x11FF}, {0x135D, 0x135F},   {0x17B4, 0x17B5},
    {0x17B7, 0x17BD}, {0x17C6, 0x17C6}, {0x17C9, 0x17D3}, {0x180B, 0x180F}, {0x1AB0, 0x1AFF},   {0x1DC0, 0x1DFF},
    {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064}, {0x2066, 0x206F}, {0x20D0, 0x20F0},   {0x302A, 0x302D},
    {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF},
};

// East Asian wide and full-width characters, and pictures (emoji): two columns each.
inline constexpr code_range wide_ranges[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x2614, 0x2615},   {0x2648, 0x2653},
    {0x26F2, 0x26F3},   {0x2705, 0x2705},   {0x270A, 0x270B},   {0x2728, 0x2728},   {0x274C, 0x274C},
    {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
    {0x4E00, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
    {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF}, {0x1AFF0, 0x1B2FF}, {0x1F18E, 0x1F19A},
    {0x1F200, 0x1F265}, {0x1F300, 0x1F320}, {0x1F32D, 0x1F335}, {0x1F337, 0x1F393}, {0x1F3A0, 0x1F3FA},
    {0x1F400, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F7E0, 0x1F7EB}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD},
};

// Hebrew, Arabic and their neighbors, with their presentation forms.
inline constexpr code_range right_to_left_ranges[] = {
    {0x05BE, 0x05BE}, {0x05C0, 0x05C0}, {0x05C3, 0x05C3}, {0x05C6, 0x05C6},   {0x05D0, 0x05F4},
    {0x0608, 0x0608}, {0x060B, 0x060B}, {0x060D, 0x060D}, {0x061B, 0x064A},   {0x066D, 0x066F},
    {0x0671, 0x06D5}, {0x06E5, 0x06E6}, {0x06EE, 0x06EF}, {0x06FA, 0x0710},   {0x0712, 0x072F},
    {0x074D, 0x07A5}, {0x07B1, 0x07EA}, {0x07F4, 0x08C9}, {0x200F, 0x200F},   {0xFB1D, 0xFB1D},
    {0xFB1F, 0xFDCE}, {0xFDF0, 0xFDFC}, {0xFE70, 0xFEFC}, {0x10800, 0x10FFF}, {0x1E800, 0x1EFFF},
};

}  // namespace detail

/// The number of terminal columns of a character: 0, 1 or 2. An approximation: combining marks 0, East Asian wide 2.
constexpr std::size_t display_width(char32_t code)
{
    if (code < 0x300) return 1;
    if (detail::in_ranges(code, std::begin(detail::zero_width_ranges), std::end(detail::zero_width_ranges))) return 0;
    return detail::in_ranges(code, std::begin(detail::wide_ranges), std::end(detail::wide_ranges)) ? 2 : 1;
}

/// The number of terminal columns of a text. An invalid byte counts as the replacement character displayed for it.
constexpr std::size_t display_width(std::string_view text)
{
    std::size_t width = 0;
    for (std::size_t position = 0; position < text.size();) {
        const utf8_character character = utf8_at(text, position);
        width += display_width(character.code);
        position += character.length;
    }
    return width;
}

/// Whether the first letter with a direction is right-to-left.   Unicode bidi rules P2, P3
constexpr bool is_right_to_left(std::string_view text)
{
    for (std::size_t position = 0; position < text.size();) {
        const utf8_character character = utf8_at(text, position);
        const char32_t code = character.code;
        position += character.length;
        if (detail::in_ranges(code, std::begin(detail::right_to_left_ranges), std::end(detail::right_to_left_ranges)))
            return true;
        const bool letter = (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z') ||
                            (code >= 0xC0 && code < 0x590 && display_width(code) > 0) ||
                            (code >= 0x900 && code < 0x2000) || (code >= 0x3041 && code < 0xFB00);
        if (letter) return false;
    }
    return false;
}

}  // namespace heed::inline HEED_TARGET::text
