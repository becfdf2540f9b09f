// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed_kit/text/display.hpp>
#include <heed_kit/view/alignment.hpp>
#include <heed_kit/view/drawing.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/cxx20.hpp>

namespace heed::inline HEED_TARGET::view {

namespace detail {

// Measures in pixels.
inline constexpr double cell = 26, gap = 2, corner = 3;
inline constexpr double slope = 0.70710678;  // labels rise at 45 degrees

/// The layout of a picture: the position of its cells relative to its upper left corner, and its size.
struct layout {
    double left = 0, top = 0, width = 0, height = 0;

    explicit layout(const alignment& picture)
    {
        double highest = 0;
        for (const std::string& word : picture.target) left = std::max(left, width_of(word));
        left = std::ceil(left + 12);
        for (std::size_t column = 0; column < picture.source.size(); ++column) {
            const double reach = slope * (width_of(picture.source[column]) + font);
            highest = std::max(highest, reach);
            width = std::max(width, left + cell * (static_cast<double>(column) + 0.5) + reach);
        }
        width = std::ceil(std::max(width, picture.title.empty() ? 0 : 1.1 * width_of(picture.title)));
        top = std::ceil(highest + 8 + (picture.title.empty() ? 0 : 26));
        height = top + cell * static_cast<double>(picture.target.size());
    }
};

/// A word that ends (or, with `rising`, begins) at x, y, in a group of such words. A right-to-left word starts on the
/// right.
inline std::string word(std::string_view text, double x, double y, bool rising)
{
    const bool from_right = text::is_right_to_left(text);
    const char* other = !from_right ? "" : rising ? " text-anchor=\"end\"" : " text-anchor=\"start\"";
    return "<text " +
           (rising ? "transform=\"translate(" + number(x) + " " + number(y) + ") rotate(-45)\""
                   : "x=\"" + number(x) + "\" y=\"" + number(y) + "\"") +
           other + direction(text) + ">" + escaped(text) + "</text>\n";
}

/// "drei ← three: 0.93". Words of mixed direction are isolated from each other; otherwise the direction of the arrow
/// would be ambiguous.
inline std::string tooltip(std::string_view target, std::string_view source, float weight)
{
    const bool mixed = text::is_right_to_left(target) || text::is_right_to_left(source);
    const auto isolated = [mixed](std::string_view word) {
        return mixed ? "\xE2\x81\xA8" + escaped(word) + "\xE2\x81\xA9" : escaped(word);  // U+2068, U+2069
    };
    return "<title>" + isolated(target) + " ← " + isolated(source) + ": " +
           (std::isfinite(weight) ? number(weight, 2) : "not a number") + "</title>";
}

/// The attributes of the square of a cell.
inline std::string square(std::size_t row, std::size_t column)
{
    const std::string side = number(cell - gap);
    return "x=\"" + number(cell * static_cast<double>(column) + gap / 2) + "\" y=\"" +
           number(cell * static_cast<double>(row) + gap / 2) + "\" width=\"" + side + "\" height=\"" + side +
           "\" rx=\"" + number(corner) + "\"";
}

/// From the background of a cell near 0 to ink, light or dark according to the browser; light by default.
inline constexpr std::string_view style = R"(<style>
.heed text { font: 13px 'DejaVu Sans', 'Noto Sans', system-ui, sans-serif; fill: #343a40; }
.heed text.title { font-weight: 600; fill: #14181f; }
.heed .legend text { font-size: 11px; fill: #6b737c; }
.heed .cell:hover { stroke: #4dabf7; stroke-width: 2; }
.heed .gold { fill: none; stroke: #f76707; stroke-width: 2; pointer-events: none; }
@media (prefers-color-scheme: dark) {
.heed .paper { fill: #1a1b1e; }
.heed text { fill: #ced4da; }
.heed text.title { fill: #f1f3f5; }
.heed .legend text { fill: #a0a7af; }
.heed .empty { fill: #2a2d32; }
.heed .zero { stroke: #3d4249; }
.heed .ink { fill: #f1f3f5; }
.heed .bad { fill: #b33a3a; }
.heed .gold { stroke: #ff922b; }
.heed .from { stop-color: #2a2d32; }
.heed .to { stop-color: #f1f3f5; }
}
</style>
)";

/// Colors as attributes, for renderers without style sheets.
inline constexpr std::string_view paper = "#f1f3f5", ink = "#14181f", bad = "#ffa8a8", rim = "#ced4da";

/// A hollow square of this side at x, y.
inline std::string hollow_square(double x, double y, double side, double round)
{
    return "<rect class=\"zero\" x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(side) +
           "\" height=\"" + number(side) + "\" rx=\"" + number(round) + "\" fill=\"none\" stroke=\"" +
           std::string(rim) + "\"/>";
}

/// The patterns of cells without ink and of cells with weight 0, and the scale of the legend.
inline std::string definitions()
{
    const std::string light(paper), dark(ink), side = number(cell);
    const auto pattern = [&side](const std::string& name, const std::string& what) {
        return "<pattern id=\"" + name + "\" width=\"" + side + "\" height=\"" + side +
               "\" patternUnits=\"userSpaceOnUse\">" + what + "</pattern>\n";
    };
    return "<defs>\n" + pattern("cells", "<rect class=\"empty\" " + square(0, 0) + " fill=\"" + light + "\"/>") +
           pattern("zeros", hollow_square(gap / 2 + 0.5, gap / 2 + 0.5, cell - gap - 1, corner)) +
           "<linearGradient id=\"scale\"><stop class=\"from\" offset=\"0\" stop-color=\"" + light +
           "\"/><stop class=\"to\" offset=\"1\" stop-color=\"" + dark + "\"/></linearGradient>\n</defs>\n";
}

/// The difference of a cell from full ink.
inline std::string filled(float weight)
{
    if (!std::isfinite(weight)) return "class=\"cell bad\" fill=\"" + std::string(bad) + "\" ";
    std::string amount = fixed(std::clamp(static_cast<double>(weight), 0.0, 1.0), 3);
    amount.erase(amount.find_last_not_of('0') + 1);
    return amount == "1." ? "class=\"cell\" " : "class=\"cell\" fill-opacity=\"" + amount.substr(1) + "\" ";
}

/// The cells with weight exactly 0, or the other cells, as one element, with a line for each run of cells; empty if
/// there are no such cells.
inline std::string look_of_cells(const alignment& picture, bool zero)
{
    std::string path;
    for (std::size_t row = 0; row < picture.target.size(); ++row)
        for (std::size_t column = 0, end = 0; column < picture.source.size(); column = end + 1) {
            end = column;
            while (end < picture.source.size() && (picture.weight(row, end) == 0) == zero) ++end;
            if (end == column) continue;
            path += "M" + number(cell * static_cast<double>(column)) + " " +
                    number(cell * (static_cast<double>(row) + 0.5)) + "h" +
                    number(cell * static_cast<double>(end - column));
        }
    if (path.empty()) return path;
    return std::string("<path stroke=\"url(#") + (zero ? "zeros" : "cells") + ")\" stroke-width=\"" + number(cell) +
           "\" d=\"" + path + "\"/>\n";
}

inline std::string draw(const alignment& picture, const layout& place)
{
    std::string result;
    if (!picture.title.empty())
        result += "<text class=\"title\" x=\"0\" y=\"14\"" +
                  std::string(text::is_right_to_left(picture.title) ? " text-anchor=\"end\"" : "") +
                  direction(picture.title) + ">" + escaped(picture.title) + "</text>\n";

    result += "<g transform=\"translate(" + number(place.left) + " " + number(place.top) + ")\">\n";
    for (std::size_t column = 0; column < picture.source.size(); ++column)
        result += word(picture.source[column], cell * (static_cast<double>(column) + 0.5) + 2, -7, true);
    result += "<g text-anchor=\"end\">\n";
    for (std::size_t row = 0; row < picture.target.size(); ++row)
        result += word(picture.target[row], -9, cell * (static_cast<double>(row) + 0.5) + 3.5, false);
    result += "</g>\n";

    // The background below the ink, in two elements; ink is drawn only where it is visible.
    result += look_of_cells(picture, false) + look_of_cells(picture, true) + "<g class=\"ink\" fill=\"" +
              std::string(ink) + "\">\n";
    for (std::size_t row = 0; row < picture.target.size(); ++row)
        for (std::size_t column = 0; column < picture.source.size(); ++column) {
            const float weight = picture.weight(row, column);
            if (weight < 0.005f) continue;  // "0.00"
            result += "<rect " + filled(weight) + square(row, column) + ">" +
                      tooltip(picture.target[row], picture.source[column], weight) + "</rect>\n";
        }
    result += "</g>\n";
    for (std::size_t row = 0; row < picture.target.size(); ++row)
        for (std::size_t column = 0; column < picture.source.size(); ++column)
            if (picture.is_gold(row, column)) result += "<rect class=\"gold\" " + square(row, column) + "/>\n";
    return result + "</g>\n";
}

inline std::string legend(bool gold)
{
    std::string result = "<text x=\"0\" y=\"10\">0</text>\n" + hollow_square(12.5, 0.5, 11, 2) +
                         "\n<rect x=\"28\" width=\"80\" height=\"12\" rx=\"3\" fill=\"url(#scale)\"/>\n"
                         "<text x=\"113\" y=\"10\">1</text>\n"
                         "<text x=\"132\" y=\"10\">attention weight</text>\n";
    if (gold)
        result += "<rect class=\"gold\" x=\"248\" y=\"0\" width=\"12\" height=\"12\" rx=\"2\"/>\n"
                  "<text x=\"267\" y=\"10\">gold link</text>\n";
    return result;
}

}  // namespace detail

/// Alignments as one self-contained SVG file: source words along the top, target words on the left; darker cells have
/// larger weights, hollow cells have weight 0, and gold links are outlined squares. Tooltips show the words and the
/// weight ("drei ← three: 0.93"). The file has a background, light or dark according to the browser; light by default.
/// On a dark background, lighter cells have larger weights.
///
/// By default, alignments are arranged vertically. With `across`, they are arranged in rows of about equal length that
/// fit this number of pixels.
///
/// Throws shape_error if the sizes of an alignment do not match, before drawing.
inline std::string svg(std::span<const alignment> pictures, double across = 0)
{
    using detail::number;
    constexpr double between = 40, legend_height = 34;
    std::vector<detail::layout> places;
    double widest = 0;
    bool gold = false;
    for (const alignment& picture : pictures) {
        require_fit("view::svg", picture);
        places.emplace_back(picture);
        widest = std::max(widest, places.back().width);
        gold = gold || !picture.gold.empty();
    }
    const std::size_t count = places.size();
    const double fit = std::floor((across + between) / (widest + between));
    std::size_t columns = fit < 2 ? 1 : fit < static_cast<double>(count) ? static_cast<std::size_t>(fit) : count;
    const std::size_t rows = count == 0 ? 0 : (count - 1) / columns + 1;
    if (rows > 0) columns = (count - 1) / rows + 1;
    std::vector<double> heights(rows, 0.0);
    for (std::size_t i = 0; i < count; ++i) heights[i / columns] = std::max(heights[i / columns], places[i].height);

    double width = static_cast<double>(columns) * (widest + between) - between, height = 0;
    for (const double high : heights) height += high + between;
    width = std::max(width, gold ? 325.0 : 235.0);
    height = std::max(0.0, height - between) + legend_height;

    const std::string size_x = number(width + 2 * detail::margin), size_y = number(height + 2 * detail::margin);
    std::string result = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"heed\" width=\"" + size_x + "\" height=\"" +
                         size_y + "\" viewBox=\"0 0 " + size_x + " " + size_y +
                         "\" role=\"img\" aria-label=\"Attention weights\">\n" + std::string(detail::style) +
                         detail::definitions() +
                         "<rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    const auto place_at = [&result](double x, double y, const std::string& what, const std::string& more = "") {
        result += "<g" + more + " transform=\"translate(" + number(x) + " " + number(y) + ")\">\n" + what + "</g>\n";
    };
    double y = detail::margin;
    for (std::size_t i = 0; i < count; ++i) {
        const double x = detail::margin + static_cast<double>(i % columns) * (widest + between);
        // The sizes are for programs that rearrange the panels, such as the site generator for narrow screens.
        const std::string size = " data-size=\"" + number(places[i].width) + " " + number(places[i].height) + "\"";
        place_at(x, y, detail::draw(pictures[i], places[i]), count > 1 ? size : "");
        if ((i + 1) % columns == 0) y += heights[i / columns] + between;
    }
    place_at(detail::margin, height + detail::margin - 12, detail::legend(gold), " class=\"legend\"");
    return result + "</svg>\n";
}

/// One alignment as an SVG file.
inline std::string svg(const alignment& picture) { return svg(std::span(&picture, 1)); }

}  // namespace heed::inline HEED_TARGET::view
