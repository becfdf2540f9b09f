// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/utf8.hpp>
#include <heed_kit/text/display.hpp>
#include <heed_kit/view/alignment.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heed::inline HEED_TARGET::view {

/// The layout of source words above their columns. `stairs` writes each in full, one line per word; `upright` writes
/// them from top to bottom, which takes fewer lines if there are many words; `automatic` chooses by length.
enum class labels { automatic, stairs, upright };

namespace detail {

inline constexpr std::size_t longest_label = 24;  // columns; longer words end in …
inline constexpr std::size_t most_stairs = 16;    // words

/// The characters of a word, each with its combining marks.
inline std::vector<std::string> characters(std::string_view word)
{
    std::vector<std::string> result;
    for (std::size_t position = 0; position < word.size();) {
        const text::utf8_character character = text::utf8_at(word, position);
        if (result.empty() || text::display_width(character.code) > 0) result.emplace_back();
        result.back() += word.substr(position, character.length);
        position += character.length;
    }
    return result;
}

inline std::vector<std::string> shortened(std::span<const std::string> words)
{
    std::vector<std::string> result;
    for (const std::string& word : words) {
        std::string label = text::printable(word);
        if (text::display_width(label) > longest_label) {
            std::string head;
            for (const std::string& character : characters(label)) {
                if (text::display_width(head) + text::display_width(character) >= longest_label) break;
                head += character;
            }
            label = head + "…";
        }
        result.push_back(std::move(label));
    }
    return result;
}

inline std::string_view shade(float weight)
{
    if (!(weight == weight)) return "?";
    if (weight >= 0.75f) return "█";
    if (weight >= 0.5f) return "▓";
    if (weight >= 0.25f) return "▒";
    return weight >= 0.05f ? "░" : " ";
}

inline std::string without_trailing_spaces(std::string line)
{
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

}  // namespace detail

/// An alignment as text for the terminal: one line per target word, two characters per source word.
///
///                  ╭ three
///                  │ ╭ hundred
///                  │ │ ╭ twenty
///                  │ │ │ ╭ four
///            drei  ██            █ from 0.75
///         hundert    ██          ▓ from 0.50
///            vier        ▓▓      ▒ from 0.25
///             und      ▒▒▒▒      ░ from 0.05
///         zwanzig      ██░░      ? not a number
///
/// A gold link is marked by ◆ in the second half of the cell. Words are aligned by their display width and cannot
/// control the terminal. Every line ends with a line break. Throws shape_error if the sizes do not match.
inline std::string shades(const alignment& picture, labels style = labels::automatic)
{
    require_fit("view::shades", picture);
    const std::vector<std::string> source = detail::shortened(picture.source);
    const std::vector<std::string> target = detail::shortened(picture.target);
    const std::size_t columns = source.size();

    std::size_t margin = 0;
    for (const std::string& word : target) margin = std::max(margin, text::display_width(word));

    std::string result;
    const auto add_line = [&result](std::string line) {
        result += detail::without_trailing_spaces(std::move(line)) + "\n";
    };
    const auto label = [margin](const std::string& word) {
        return "  " + std::string(margin - text::display_width(word), ' ') + word + "  ";
    };
    if (!picture.title.empty()) add_line(text::printable(picture.title));

    std::vector<std::vector<std::string>> upright;
    std::size_t tallest = 0;
    for (const std::string& word : source) {
        upright.push_back(detail::characters(word));
        tallest = std::max(tallest, upright.back().size());
    }
    if (style == labels::automatic)
        style = columns <= detail::most_stairs || columns <= tallest ? labels::stairs : labels::upright;

    if (style == labels::stairs) {
        for (std::size_t column = 0; column < columns; ++column) {
            std::string line = label("");
            for (std::size_t before = 0; before < column; ++before) line += "│ ";
            add_line(line + "╭ " + source[column]);
        }
    } else {
        for (std::size_t height = tallest; height > 0; --height) {
            std::string line = label("");
            for (const auto& letters : upright) {
                const std::string letter = height <= letters.size() ? letters[letters.size() - height] : "";
                line += letter + std::string(2 - std::min<std::size_t>(2, text::display_width(letter)), ' ');
            }
            add_line(line);
        }
    }
    for (std::size_t row = 0; row < target.size(); ++row) {
        std::string line = label(target[row]);
        for (std::size_t column = 0; column < columns; ++column) {
            const std::string_view shade = detail::shade(picture.weight(row, column));
            line += shade;
            line += picture.is_gold(row, column) ? "◆" : shade;
        }
        add_line(line);
    }
    return result;
}

}  // namespace heed::inline HEED_TARGET::view
