// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/view/drawing.hpp>
#include <heed_kit/view/png.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace heed::inline HEED_TARGET::view {

/// The regions of a picture attended to for each word.
struct overlay {
    std::string title = {};
    std::size_t height = 0, width = 0;  ///< of the picture, in pixels
    std::vector<float> pixels = {};     ///< [height,width], 0 black to 1 white
    std::size_t rows = 0, columns = 0;  ///< grid of regions that covers the picture
    std::vector<std::string> words = {};
    std::vector<float> weights = {};  ///< [words,rows·columns]
};

namespace detail {

inline void require_fit(const overlay& picture)
{
    const std::size_t regions = picture.rows * picture.columns;
    if (picture.pixels.size() != picture.height * picture.width || picture.pixels.empty()) {
        throw shape_error("view::overlay: " + counted(picture.pixels.size(), "pixel") + ", but the picture has " +
                          counted(picture.height, "row") + " of " + std::to_string(picture.width));
    }
    if (regions == 0 || picture.weights.size() != picture.words.size() * regions) {
        throw shape_error("view::overlay: " + counted(picture.weights.size(), "weight") + " for " +
                          counted(picture.words.size(), "word") + " and " + counted(picture.rows, "row") + " of " +
                          counted(picture.columns, "region") + "; expected one for each word and region");
    }
}

/// The regions of one word over the picture: opacity is proportional to the weight, and the largest weight of the word
/// is almost opaque.
inline std::string regions(const overlay& picture, std::size_t word, double scale)
{
    const std::size_t count = picture.rows * picture.columns;
    const std::span<const float> weights(picture.weights.data() + word * count, count);
    float greatest = 0;
    for (const float w : weights) {
        if (w > greatest) greatest = w;  // false for NaN
    }
    const double high = scale * static_cast<double>(picture.height) / static_cast<double>(picture.rows);
    const double wide = scale * static_cast<double>(picture.width) / static_cast<double>(picture.columns);
    std::string result = "<g class=\"seen\" fill=\"#f76707\">\n";
    for (std::size_t i = 0; i < count; ++i) {
        const bool finite = std::isfinite(weights[i]);
        const double share = finite && greatest > 0 ? static_cast<double>(weights[i] / greatest) : 0;
        if (finite && share < 0.02) continue;
        result += "<rect x=\"" + number(wide * static_cast<double>(i % picture.columns), 2) + "\" y=\"" +
                  number(high * static_cast<double>(i / picture.columns), 2) + "\" width=\"" + number(wide, 2) +
                  "\" height=\"" + number(high, 2) + "\" " +
                  (finite ? "fill-opacity=\"" + fixed(0.8 * share, 3) + "\"" : std::string("fill=\"#e03131\"")) +
                  "><title>" + escaped(picture.words[word]) + ": " +
                  (finite ? number(static_cast<double>(weights[i]), 3) : "not a number") + "</title></rect>\n";
    }
    return result + "</g>\n";
}

}  // namespace detail

/// Pictures with attended regions, as one self-contained SVG file: a row of panels for each picture, first the picture
/// alone, then one panel for each word, with the word above it, as in Xu et al. 2015, figure 3. Regions are shaded
/// orange by their weight relative to the largest weight of the word; tooltips show the weights. `scale`: pixels of the
/// file per pixel of the picture. Throws shape_error if the sizes in an overlay do not match, before drawing.
inline std::string svg(std::span<const overlay> pictures, double scale = 2)
{
    using detail::number;
    constexpr double between = 12, above = 22, title_height = 24;
    double width = 0, height = 0;
    for (const overlay& picture : pictures) {
        detail::require_fit(picture);
        const auto panels = static_cast<double>(picture.words.size() + 1);
        width = std::max(width, panels * (scale * static_cast<double>(picture.width) + between) - between);
        height +=
            above + scale * static_cast<double>(picture.height) + between + (picture.title.empty() ? 0 : title_height);
    }
    const std::string size_x = number(std::ceil(width + 2 * detail::margin)),
                      size_y = number(std::ceil(std::max(0.0, height - between) + 2 * detail::margin));
    std::string result = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"heed\" width=\"" + size_x + "\" height=\"" +
                         size_y + "\" viewBox=\"0 0 " + size_x + " " + size_y +
                         "\" role=\"img\" aria-label=\"Attended regions\">\n"
                         "<style>\n.heed text { font: 13px " +
                         std::string(detail::fonts) +
                         "; fill: #343a40; }\n.heed text.title { font-weight: 600; fill: #14181f; }\n"
                         ".heed image { image-rendering: pixelated; }\n"
                         ".heed .seen rect:hover { stroke: #4dabf7; stroke-width: 1.5; }\n"
                         "@media (prefers-color-scheme: dark) {\n.heed .paper { fill: #1a1b1e; }\n"
                         ".heed text { fill: #ced4da; }\n.heed text.title { fill: #f1f3f5; }\n}\n</style>\n"
                         "<rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<defs>\n";
    for (std::size_t i = 0; i < pictures.size(); ++i) {
        const overlay& picture = pictures[i];
        result += "<image id=\"picture" + std::to_string(i) + "\" width=\"" +
                  number(scale * static_cast<double>(picture.width)) + "\" height=\"" +
                  number(scale * static_cast<double>(picture.height)) + "\" href=\"data:image/png;base64," +
                  detail::base64(png(picture.height, picture.width, picture.pixels)) + "\"/>\n";
    }
    result += "</defs>\n";
    double y = detail::margin;
    for (std::size_t i = 0; i < pictures.size(); ++i) {
        const overlay& picture = pictures[i];
        if (!picture.title.empty()) {
            result += "<text class=\"title\" x=\"" + number(detail::margin) + "\" y=\"" + number(y + 12) + "\"" +
                      detail::direction(picture.title) + ">" + detail::escaped(picture.title) + "</text>\n";
            y += title_height;
        }
        const double wide = scale * static_cast<double>(picture.width);
        for (std::size_t panel = 0; panel <= picture.words.size(); ++panel) {
            result += "<g transform=\"translate(" +
                      number(detail::margin + static_cast<double>(panel) * (wide + between)) + " " + number(y) +
                      ")\">\n";
            if (panel > 0) {
                const std::string& word = picture.words[panel - 1];
                result += "<text x=\"" + number(wide / 2) + "\" y=\"14\" text-anchor=\"middle\"" +
                          detail::direction(word) + ">" + detail::escaped(word) + "</text>\n";
            }
            result += "<g transform=\"translate(0 " + number(above) + ")\">\n<use href=\"#picture" + std::to_string(i) +
                      "\"/>\n";
            if (panel > 0) result += detail::regions(picture, panel - 1, scale);
            result += "</g>\n</g>\n";
        }
        y += above + scale * static_cast<double>(picture.height) + between;
    }
    return result + "</svg>\n";
}

/// One picture as an SVG file.
inline std::string svg(const overlay& picture, double scale = 2) { return svg(std::span(&picture, 1), scale); }

}  // namespace heed::inline HEED_TARGET::view
