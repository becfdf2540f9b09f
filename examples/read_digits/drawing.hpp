// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/nn/convolution.hpp>

/// Pictures of numbers: digits drawn with pen strokes, at random positions, sizes, slants and thicknesses, on paper
/// with clutter and noise.
namespace read_digits {

struct point {
    double x = 0, y = 0;
};
using stroke = std::vector<point>;

/// Numbers from one stream, in sequence.
class dice {
public:
    explicit dice(std::uint64_t stream) : stream_(stream) {}

    double between(double low, double high) { return low + (high - low) * heed::uniform(stream_, next_++); }
    std::size_t below(std::size_t bound) { return heed::below(bound, stream_, next_++); }
    double normal() { return heed::normal(stream_, next_++); }

private:
    std::uint64_t stream_, next_ = 0;
};

namespace detail {

/// A part of an ellipse; angles in degrees, clockwise from the right, since y points down.
inline stroke arc(point center, double rx, double ry, double from, double to)
{
    stroke line;
    constexpr int pieces = 14;
    for (int i = 0; i <= pieces; ++i) {
        const double angle = (from + (to - from) * i / pieces) * std::numbers::pi / 180;
        line.push_back({center.x + rx * std::cos(angle), center.y + ry * std::sin(angle)});
    }
    return line;
}

inline stroke joined(stroke first, const stroke& second)
{
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

}  // namespace detail

/// The width of a digit of height 1.
inline constexpr double digit_width = 0.6;

/// The strokes of a digit in a box of height 1 and width 0.6. 1, 4 and 7 have two forms.
inline std::vector<stroke> strokes_of(std::size_t digit, bool other_form)
{
    using detail::arc, detail::joined;
    switch (digit) {
    case 0:
        return {arc({.3, .5}, .27, .5, 0, 360)};
    case 1:
        if (other_form) return {{{.1, .25}, {.33, 0}, {.33, 1}}, {{.1, 1}, {.55, 1}}};
        return {{{.1, .25}, {.33, 0}, {.33, 1}}};
    case 2:
        return {joined(arc({.3, .28}, .27, .28, 190, 390), {{.03, 1}, {.58, 1}})};
    case 3:
        return {arc({.28, .25}, .25, .25, 200, 450), arc({.28, .75}, .29, .25, 270, 510)};
    case 4:
        if (other_form) return {{{.12, 0}, {.04, .6}, {.6, .6}}, {{.44, .25}, {.44, 1}}};
        return {{{.44, 1}, {.44, 0}, {.02, .7}, {.6, .7}}};
    case 5:
        return {joined({{.55, 0}, {.1, 0}, {.087, .45}}, arc({.28, .69}, .3, .31, 230, 510))};
    case 6:
        return {{{.48, 0}, {.2, .28}, {.05, .6}}, arc({.3, .72}, .27, .28, 0, 360)};
    case 7:
        if (other_form) return {{{.02, 0}, {.58, 0}, {.22, 1}}, {{.14, .5}, {.52, .5}}};
        return {{{.02, 0}, {.58, 0}, {.22, 1}}};
    case 8:
        return {arc({.3, .24}, .22, .24, 0, 360), arc({.3, .74}, .28, .26, 0, 360)};
    default:
        return {arc({.3, .29}, .27, .29, 0, 360), {{.57, .3}, {.5, .72}, {.26, 1}}};
    }
}

/// The position of a digit, in pixels.
struct box {
    double left = 0, top = 0, right = 0, bottom = 0;

    bool contains(point p, double grown = 0) const
    {
        return p.x >= left - grown && p.x <= right + grown && p.y >= top - grown && p.y <= bottom + grown;
    }
};

struct picture {
    heed::grid size;
    std::vector<float> pixels;          // [H,W], 0 to 1
    std::vector<std::uint32_t> digits;  // from left to right
    std::vector<box> boxes;             // of each digit
};

/// Ink on paper: the fraction of each pixel covered by a pen.
class canvas {
public:
    explicit canvas(heed::grid size) : size_(size), covered_(size.size(), 0.0f) {}

    /// A line with round ends. The coverage of a pixel is the distance of its center inside the edge of the pen.
    void draw(const stroke& line, double thickness, double strength = 1)
    {
        for (std::size_t i = 0; i + 1 < line.size(); ++i) draw(line[i], line[i + 1], thickness / 2 + 0.5, strength);
    }

    float at(std::size_t i) const { return covered_[i]; }

private:
    void draw(point a, point b, double reach, double strength)
    {
        const auto first = [](double x) { return static_cast<std::size_t>(std::max(0.0, std::floor(x))); };
        const std::size_t top = first(std::min(a.y, b.y) - reach), left = first(std::min(a.x, b.x) - reach);
        const std::size_t bottom = std::min(size_.height, first(std::max(a.y, b.y) + reach + 1));
        const std::size_t right = std::min(size_.width, first(std::max(a.x, b.x) + reach + 1));
        const double dx = b.x - a.x, dy = b.y - a.y, squared = dx * dx + dy * dy;
        for (std::size_t row = top; row < bottom; ++row) {
            for (std::size_t column = left; column < right; ++column) {
                const double x = static_cast<double>(column) + 0.5 - a.x, y = static_cast<double>(row) + 0.5 - a.y;
                const double along = squared > 0 ? std::clamp((x * dx + y * dy) / squared, 0.0, 1.0) : 0;
                const double distance = std::hypot(x - along * dx, y - along * dy);
                const auto ink = static_cast<float>(strength * std::clamp(reach - distance, 0.0, 1.0));
                float& pixel = covered_[row * size_.width + column];
                pixel = std::max(pixel, ink);
            }
        }
    }

    heed::grid size_;
    std::vector<float> covered_;
};

/// A picture of a number of `count` random digits; a function of its arguments.
inline picture draw_number(heed::grid size, std::size_t count, std::uint64_t stream)
{
    dice random(stream);
    const auto height_of_all = static_cast<double>(size.height), width_of_all = static_cast<double>(size.width);
    const double aspect = random.between(0.85, 1.2), gap = random.between(0.2, 0.4);
    const double slant = random.between(-0.25, 0.25), turn = random.between(-0.06, 0.06);
    const double advance = digit_width * aspect + gap, length = advance * static_cast<double>(count);  // height is 1
    constexpr double edge = 3;
    const double fits = std::min(height_of_all - 2 * edge, (width_of_all - 2 * edge) / length);
    const double height = std::min(fits, random.between(0.4, 0.75) * height_of_all);
    const double thickness = height * random.between(0.08, 0.15);
    const double left = random.between(edge, width_of_all - edge - height * length);
    const double top = random.between(edge, height_of_all - edge - height);

    picture result{size, std::vector<float>(size.size()), {}, {}};
    canvas ink(size), clutter(size);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t digit = random.below(10);
        const bool other_form = random.below(2) == 1;
        const double own = height * random.between(0.92, 1.05);
        const double x = left + height * (advance * static_cast<double>(i) + gap / 2) + random.between(-1, 1);
        const double y = top + (height - own) / 2 + random.between(-1, 1) +
                         std::tan(turn) * (x + height * aspect * digit_width / 2 - width_of_all / 2);
        box around{width_of_all, height_of_all, 0, 0};
        for (stroke line : strokes_of(digit, other_form)) {
            for (point& p : line) {
                const double from_middle = own * (p.y - 0.5);
                p = {x + own * aspect * p.x - slant * from_middle, y + own * p.y};
                around = {std::min(around.left, p.x), std::min(around.top, p.y), std::max(around.right, p.x),
                          std::max(around.bottom, p.y)};
            }
            ink.draw(line, thickness);
        }
        result.digits.push_back(static_cast<std::uint32_t>(digit));
        result.boxes.push_back(around);
    }
    for (std::size_t i = 3 + random.below(6); i > 0; --i) {
        const point from{random.between(0, width_of_all), random.between(0, height_of_all)};
        const double angle = random.between(0, 2 * std::numbers::pi), far = random.between(2, 8);
        clutter.draw({from, {from.x + far * std::cos(angle), from.y + far * std::sin(angle)}}, random.between(0.6, 1.6),
                     random.between(0.4, 0.8));
    }

    const bool dark_ink = random.below(2) == 0;
    const double paper = random.between(0, 0.3), contrast = random.between(0.4, 0.65),
                 noise = random.between(0.01, 0.08);
    const double across = random.between(-0.12, 0.12), down = random.between(-0.12, 0.12);
    for (std::size_t i = 0; i < size.size(); ++i) {
        const double x = static_cast<double>(i % size.width) / width_of_all - 0.5;
        const double y = static_cast<double>(i / size.width) / height_of_all - 0.5;
        const double gray = paper + across * x + down * y +
                            contrast * static_cast<double>(std::max(ink.at(i), clutter.at(i))) +
                            noise * random.normal();
        result.pixels[i] = static_cast<float>(std::clamp(dark_ink ? 1 - gray : gray, 0.0, 1.0));
    }
    return result;
}

}  // namespace read_digits
