// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/text/display.hpp>
#include <heed_kit/view/drawing.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed::inline HEED_TARGET::view {

/// A line of a chart, or its bars of one color. A point with a coordinate that is not finite leaves a gap in the line;
/// a bar that is not finite is omitted. All finite numbers are drawn.
struct series {
    std::string name = {};
    std::vector<double> xs = {};  ///< empty if the chart has groups
    std::vector<double> ys = {};
};

/// Lines over numbers (a learning curve), or lines or bars over named groups (BLEU by sentence length).
struct chart {
    std::string title = {};
    std::string x_label = {};
    std::string y_label = {};
    std::vector<series> all = {};
    std::vector<std::string> groups = {};  ///< names along the x axis; each series then has one y per group and no xs
    bool bars = false;                     ///< only over groups
    bool from_zero = false;                ///< the y axis includes 0; always true for bars
    double width = 760, height = 420;      ///< pixels
};

namespace detail {

struct color {
    std::string_view light, dark;
};

inline constexpr std::array<color, 8> colors{{{"#1c7ed6", "#74c0fc"},
                                              {"#e8590c", "#ffa94d"},
                                              {"#2b8a3e", "#8ce99a"},
                                              {"#9c36b5", "#e599f7"},
                                              {"#c2255c", "#faa2c1"},
                                              {"#0b7285", "#66d9e8"},
                                              {"#846200", "#ffe066"},
                                              {"#495057", "#ced4da"}}};

/// An axis: its range, and its ticks at multiples of 1, 2 or 5 times a power of ten.
struct axis {
    double low = 0, high = 1, step = 1;
    std::vector<double> ticks = {};

    /// For finite values from `low` to `high`: about `most` ticks, at least two. `rounded`: the axis begins and ends at
    /// a tick; otherwise no value is more than half a step beyond the last tick. `whole`: all values are integers, such
    /// as epochs, and so are the ticks. Values that differ by less than one part in 10¹² count as equal, and values
    /// below 1e-290 as 0. So a tick is at most about 10¹⁴ steps from 0, and counting steps is exact.
    static axis over(double low, double high, std::size_t most, bool rounded, bool whole = false)
    {
        if (!(low <= high) || largest(low, high) < 1e-290) low = 0, high = 1;  // no values, or all are 0
        // Halved, here and in share(): the range from -1e308 to 1e308 exceeds the largest double.
        if (high / 2 - low / 2 <= 0.5e-12 * largest(low, high)) {
            const double around = whole && largest(low, high) < 1e9 ? 1 : 0.1 * std::abs(low);
            low = bounded(low - around), high = bounded(high + around);
        }
        axis result{low, high, 0, {}};
        const double least = (high / 2 - low / 2) / static_cast<double>(most) * 2;
        result.step = std::pow(10, std::floor(std::log10(least)));
        for (const double factor : {2.0, 2.5, 2.0})  // 1, 2, 5, 10
            if (result.step < least * (1 - 1e-9)) result.step *= factor;
        result.step = std::min(result.step, 1e308);
        if (whole) result.step = std::max(1.0, result.step);
        const double last = std::floor(result.high / result.step + 1e-9) * result.step;
        if (rounded) result.low = bounded(std::floor(low / result.step + 1e-9) * result.step);
        if (rounded || high - last > (0.5 + 1e-9) * result.step)
            result.high = bounded(std::ceil(high / result.step - 1e-9) * result.step);
        const double begin = std::ceil(result.low / result.step - 1e-9);
        const double end = std::floor(result.high / result.step + 1e-9);
        for (double n = begin; n <= end; ++n) result.ticks.push_back(n == 0 ? 0 : bounded(n * result.step));
        return result.ticks.size() < 2 && most < 20 ? over(low, high, 2 * most, rounded, whole) : result;
    }

    /// The position of a value: 0 at the low end of the axis, 1 at the high end.
    double share(double value) const { return (value / 2 - low / 2) / (high / 2 - low / 2); }

    /// The label of a tick, with the required number of decimals and separators of thousands from 10 000 on.
    std::string name(double tick) const
    {
        if (exponential()) return general(tick, std::max(4, digits()));
        std::string text = fixed(tick, std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9))));
        if (std::abs(tick) >= 10000)
            for (std::size_t at = std::min(text.find('.'), text.size()); at > 3 && text[at - 4] != '-'; at -= 3)
                text.insert(at - 3, "\u202F");
        return text;
    }

    /// Whether the numbers are written as 1e+09.
    bool exponential() const { return largest(low, high) >= 1e9 || step < 1e-6; }

    /// The number of significant digits that distinguishes neighboring ticks.
    int digits() const { return 1 + static_cast<int>(std::ceil(std::log10(largest(low, high) / step))); }

    /// Formats with at most this many significant digits.
    static std::string general(double value, int digits)
    {
        std::array<char, 64> buffer{};
        const auto end =
            std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, digits);
        return {buffer.data(), end.ptr};
    }

private:
    static double bounded(double value)
    {
        constexpr double max = std::numeric_limits<double>::max();
        return std::clamp(value, -max, max);
    }
    static double largest(double low, double high) { return std::max(std::abs(low), std::abs(high)); }
};

/// A text that begins (-1), is centered (0) or ends (1) at x.
inline std::string chart_text(std::string_view text, double x, double y, int anchor, std::string_view attributes = "")
{
    const bool from_right = text::is_right_to_left(text);
    std::string result = "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\"";
    if (anchor == 0) result += " text-anchor=\"middle\"";
    if ((anchor > 0) != (anchor != 0 && from_right)) result += " text-anchor=\"end\"";
    result += attributes;
    return result + direction(text) + ">" + escaped(text) + "</text>\n";
}

inline std::string chart_style()
{
    std::string result = "<style>\n.chart text { font: 13px " + std::string(fonts) +
                         "; fill: #343a40; }\n"
                         ".chart .title { font-weight: 600; font-size: 15px; fill: #14181f; }\n"
                         ".chart .tick { font-size: 12px; fill: #5f6871; }\n"
                         ".chart .hit { opacity: 0; }\n.chart .hit:hover { opacity: .55; }\n"
                         ".chart .bar:hover { opacity: .8; }\n"
                         "@media (prefers-color-scheme: dark) {\n"
                         ".chart .paper { fill: #1a1b1e; }\n.chart text { fill: #ced4da; }\n"
                         ".chart .title { fill: #f1f3f5; }\n.chart .tick { fill: #a0a7af; }\n"
                         ".chart .grid { stroke: #2f3238; }\n.chart .base { stroke: #868e96; }\n";
    for (std::size_t i = 0; i < colors.size(); ++i) {
        const std::string dark(colors[i].dark), name = std::to_string(i);
        result += ".chart .l" + name + " { stroke: " + dark + "; }\n.chart .f" + name + " { fill: " + dark + "; }\n";
    }
    return result + "}\n</style>\n";
}

/// Colors as attributes, for renderers without style sheets; the dark colors are in the style sheet.
inline std::string stroke(std::size_t n)
{
    const std::size_t hue = n % colors.size();
    constexpr std::array<std::string_view, 3> dashes{"", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 4\""};
    return "class=\"l" + std::to_string(hue) + "\" stroke=\"" + std::string(colors[hue].light) + "\"" +
           std::string(dashes[n / colors.size() % dashes.size()]);
}

inline std::string fill(std::size_t n, std::string_view more = "")
{
    const std::size_t hue = n % colors.size();
    return "class=\"" + std::string(more) + "f" + std::to_string(hue) + "\" fill=\"" + std::string(colors[hue].light) +
           "\"";
}

struct point {
    double x = 0, y = 0;    // position in the picture
    std::size_t index = 0;  // index in the series
};

/// Reduces many points to distinguishable ones: the first, lowest, highest and last per column of pixels. `points` is
/// one unbroken run.
inline std::vector<point> visible(const std::vector<point>& points)
{
    if (points.size() <= 2000) return points;
    std::vector<point> result;
    for (std::size_t begin = 0; begin < points.size();) {
        std::size_t end = begin, low = begin, high = begin;
        for (; end < points.size() && std::floor(points[end].x) == std::floor(points[begin].x); ++end) {
            if (points[end].y < points[low].y) low = end;
            if (points[end].y > points[high].y) high = end;
        }
        std::array<std::size_t, 4> kept{begin, std::min(low, high), std::max(low, high), end - 1};
        for (std::size_t i = 0; i < kept.size(); ++i)
            if (i == 0 || kept[i] != kept[i - 1]) result.push_back(points[kept[i]]);
        begin = end;
    }
    return result;
}

inline void require_fit(const chart& picture)
{
    if (picture.bars && picture.groups.empty())
        throw error("view::svg: a bar chart without groups; give the name of each group in `groups`");
    for (const double side : {picture.width, picture.height})
        if (!(side > 0 && side <= 1e6))
            throw error("view::svg: a chart of " + axis::general(picture.width, 4) + " by " +
                        axis::general(picture.height, 4) + " pixels; both must be above 0 and at most 1e6");
    for (const series& line : picture.all) {
        const bool grouped = !picture.groups.empty();
        if (grouped && !line.xs.empty())
            throw shape_error("view::svg: the chart has groups, so series " + line.name + " takes no xs; give only ys");
        const std::size_t needed = grouped ? picture.groups.size() : line.xs.size();
        if (line.ys.size() != needed)
            throw shape_error("view::svg: series " + line.name + " has " + counted(line.ys.size(), "y") + ", but " +
                              std::to_string(needed) + (grouped ? " groups" : " xs"));
    }
}

/// Draws one chart, which has been validated.
class chart_drawing {
public:
    explicit chart_drawing(const chart& picture) : picture_(picture), groups_(picture.groups.size())
    {
        const bool grouped = groups_ > 0;
        bool whole_xs = true;
        constexpr double infinity = std::numeric_limits<double>::infinity();
        double x_low = infinity, x_high = -infinity, y_low = infinity, y_high = -infinity;
        for (const series& line : picture.all)
            for (std::size_t i = 0; i < line.ys.size(); ++i) {
                const double x = grouped ? 0 : line.xs[i];
                if (!std::isfinite(x) || !std::isfinite(line.ys[i])) continue;
                x_low = std::min(x_low, x), x_high = std::max(x_high, x);
                whole_xs = whole_xs && std::floor(x) == x;
                whole_ = whole_ && std::floor(line.ys[i]) == line.ys[i];
                y_low = std::min(y_low, line.ys[i]), y_high = std::max(y_high, line.ys[i]);
            }
        if (picture.bars || picture.from_zero) y_low = std::min(y_low, 0.0), y_high = std::max(y_high, 0.0);
        if (x_low > 0 && x_low < 0.15 * x_high) x_low = 0;  // counts start at 0

        bottom_ = picture.height - 16 - (picture.x_label.empty() ? 20 : 44);
        top_ = 20;
        if (!picture.title.empty()) top_ += 24;
        header();
        top_ += picture.y_label.empty() ? 6 : 26;
        y_ = axis::over(y_low, y_high, static_cast<std::size_t>(std::clamp((bottom_ - top_) / 44, 2.0, 12.0)), true);
        left_ = margin + widest_name(y_) + 8;
        right_ = std::max(left_ + 40, picture.width - margin - 6);
        const double wide = right_ - left_;
        // One tick per epoch if there are few; otherwise a tick about every 85 pixels, or further apart if the labels
        // require it.
        const bool each = whole_xs && x_high - x_low <= std::min(20.0, wide / 34) && std::abs(x_high) < 1000;
        const auto with_ticks = [&](double most) {
            return axis::over(x_low, x_high, static_cast<std::size_t>(most), false, whole_xs);
        };
        x_ = with_ticks(each ? 20 : std::clamp(wide / 85, 2.0, 12.0));
        if (const double room = widest_name(x_) + 12; room > 85) x_ = with_ticks(std::clamp(wide / room, 2.0, 12.0));

        for (const std::string& group : picture.groups) widest_group_ = std::max(widest_group_, width_of(group));
        if (grouped && widest_group_ > share()) bottom_ -= std::min(110.0, 0.7072 * widest_group_);
        if (picture.bars) {
            labels_ = labels_for(bar_width());
            top_ += std::max(0.0, labels_.height() - (down(y_high) - top_));
            if (y_low < 0) below_ = std::max(0.0, labels_.height() - (bottom_ - down(y_low)) - 6);
            bottom_ -= below_;
        }
        bottom_ = std::max(bottom_, top_ + 40);
    }

    std::string draw()
    {
        axes();
        for (std::size_t n = 0; n < picture_.all.size(); ++n)
            if (picture_.bars)
                bars(n);
            else
                line(n);
        result_ += hits_;
        const std::string width = number(picture_.width), height = number(picture_.height);
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"" + width + "\" height=\"" + height +
               "\" viewBox=\"0 0 " + width + " " + height + "\" role=\"img\" aria-label=\"" +
               escaped(picture_.title.empty() ? picture_.y_label : picture_.title) + "\">\n" + chart_style() +
               "<rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + result_ + "</svg>\n";
    }

private:
    static double widest_name(const axis& scale)
    {
        double widest = 0;
        for (const double tick : scale.ticks) widest = std::max(widest, 0.95 * width_of(scale.name(tick)));
        return widest;
    }

    double share() const { return (right_ - left_) / static_cast<double>(groups_); }
    double center(std::size_t group) const { return left_ + share() * (static_cast<double>(group) + 0.5); }
    double across(double x) const { return left_ + x_.share(x) * (right_ - left_); }
    double down(double y) const { return bottom_ - y_.share(y) * (bottom_ - top_); }

    // The title, and the legend of colors.
    void header()
    {
        if (!picture_.title.empty()) result_ += chart_text(picture_.title, margin, 32, -1, " class=\"title\"");
        if (std::all_of(picture_.all.begin(), picture_.all.end(), [](const series& line) { return line.name.empty(); }))
            return;
        double x = margin;
        for (std::size_t n = 0; n < picture_.all.size(); ++n) {
            const std::string& name = picture_.all[n].name;
            const double width = 26 + width_of(name) + 18;
            if (x > margin && x + width > picture_.width - margin) x = margin, top_ += 20;
            if (picture_.bars)
                result_ += "<rect x=\"" + number(x) + "\" y=\"" + number(top_ + 1) +
                           "\" width=\"12\" height=\"12\" rx=\"2.5\" " + fill(n) + "/>\n";
            else
                result_ += "<path d=\"M" + number(x) + " " + number(top_ + 7) + "h20\" stroke-width=\"3\" " +
                           stroke(n) + "/>\n";
            result_ += chart_text(name, x + (picture_.bars ? 18 : 26), top_ + 11.5, -1);
            x += width;
        }
        top_ += 26;
    }

    void axes()
    {
        if (!picture_.y_label.empty())
            result_ += chart_text(picture_.y_label, margin, top_ - 11, -1, " class=\"tick\"");
        for (const double tick : y_.ticks) {
            const std::string y = number(std::round(down(tick)) + 0.5);
            result_ += "<path class=\"grid\" stroke=\"#e9ecef\" d=\"M" + number(left_) + " " + y + "H" +
                       number(right_) + "\"/>\n" +
                       chart_text(y_.name(tick), left_ - 8, down(tick) + 4.5, 1, " class=\"tick\"");
        }
        const double base = std::round(down(y_.low <= 0 && y_.high >= 0 ? 0 : y_.low)) + 0.5;
        std::string ticks = "M" + number(left_) + " " + number(base) + "H" + number(right_);
        if (groups_ == 0)
            for (const double tick : x_.ticks) {
                ticks += "M" + number(std::round(across(tick)) + 0.5) + " " + number(bottom_ + 0.5) + "v5";
                result_ += chart_text(x_.name(tick), across(tick), bottom_ + 19, 0, " class=\"tick\"");
            }
        for (std::size_t group = 0; group < groups_; ++group) {
            if (widest_group_ <= share()) {
                result_ +=
                    chart_text(picture_.groups[group], center(group), bottom_ + below_ + 19, 0, " class=\"tick\"");
                continue;
            }
            const std::string place = number(center(group) + 4) + " " + number(bottom_ + below_ + 14);
            result_ += chart_text(picture_.groups[group], 0, 0, 1,
                                  " class=\"tick\" transform=\"translate(" + place + ") rotate(-45)\"");
        }
        result_ += "<path class=\"base\" fill=\"none\" stroke=\"#868e96\" d=\"" + ticks + "\"/>\n";
        if (!picture_.x_label.empty())
            result_ += chart_text(picture_.x_label, (left_ + right_) / 2, picture_.height - 16, 0, " class=\"tick\"");
    }

    std::string tooltip(const series& line, std::size_t i) const
    {
        const std::string where =
            groups_ > 0 ? picture_.groups[i] : axis::general(line.xs[i], std::max(7, x_.digits()));
        return "<title>" + escaped(line.name) + ": " + axis::general(line.ys[i], 4) + " at " + escaped(where) +
               "</title>";
    }

    void line(std::size_t n)
    {
        const series& line = picture_.all[n];
        std::vector<std::vector<point>> runs(1);
        for (std::size_t i = 0; i < line.ys.size(); ++i) {
            const double x = groups_ > 0 ? 0 : line.xs[i];
            if (std::isfinite(x) && std::isfinite(line.ys[i]))
                runs.back().push_back({groups_ > 0 ? center(i) : across(x), down(line.ys[i]), i});
            else if (!runs.back().empty())
                runs.emplace_back();
        }
        std::size_t total = 0;
        std::string path, dots;
        for (std::vector<point>& run : runs) {
            run = visible(run);
            total += run.size();
            for (std::size_t i = 0; i < run.size(); ++i)
                path += (i == 0 ? "M" : "L") + number(run[i].x) + " " + number(run[i].y);
        }
        const std::size_t every = total / 200 + 1;  // points that respond to the pointer
        std::size_t position = 0;
        for (const std::vector<point>& run : runs)
            for (const point& p : run) {
                const std::string circle = "<circle cx=\"" + number(p.x) + "\" cy=\"" + number(p.y) + "\" ";
                if (total <= 40 || run.size() == 1) dots += circle + "r=\"3\" " + fill(n) + "/>\n";
                if (position++ % every == 0 || position == total)
                    hits_ += circle + "r=\"7\" " + fill(n, "hit ") + ">" + tooltip(line, p.index) + "</circle>\n";
            }
        if (!path.empty())
            result_ += "<path fill=\"none\" stroke-width=\"" + std::string(total > 1000 ? "1.2" : "2") +
                       "\" stroke-linejoin=\"round\" stroke-linecap=\"round\" " + stroke(n) + " d=\"" + path +
                       "\"/>\n" + dots;
    }

    /// The label of a bar's value.
    std::string value_name(double value) const
    {
        return y_.exponential() ? axis::general(value, 4) : fixed(value, whole_ ? 0 : y_.step < 0.5 ? 2 : 1);
    }

    /// Orientation and size of the numbers above bars such that they do not touch: large, small, upright, or omitted.
    /// The same for all bars; also determines the space for the numbers.
    struct value_labels {
        double size = 12, width = 0;
        bool upright = false;
        double height() const { return size == 0 ? 0 : (upright ? width : 0.8 * size) + 5; }
    };

    value_labels labels_for(double bar) const
    {
        double widest = 0;
        for (const series& line : picture_.all)
            for (const double value : line.ys)
                if (std::isfinite(value)) widest = std::max(widest, width_of_number(value_name(value)));
        for (const double size : {12.0, 10.0})
            if (widest * size + 4 <= bar) return {size, widest * size, false};
        for (const double size : {12.0, 10.0})
            if (size + 1 <= bar) return {size, widest * size, true};
        return {0, 0, false};
    }

    /// At a font size of one pixel, in the widest of the fonts.
    static double width_of_number(std::string_view name)
    {
        double width = 0;
        for (const char c : name) width += c == '.' ? 0.32 : 0.64;
        return width;
    }

    double bar_width() const
    {
        return std::min(44.0, 0.82 * share() / static_cast<double>(std::max<std::size_t>(1, picture_.all.size())));
    }

    void bars(std::size_t n)
    {
        const series& line = picture_.all[n];
        const auto count = static_cast<double>(picture_.all.size());
        const double width = bar_width(), thickness = width > 5 ? width - 2 : 0.85 * width;
        for (std::size_t group = 0; group < groups_; ++group) {
            const double value = line.ys[group];
            if (!std::isfinite(value)) continue;
            const double x = center(group) + width * (static_cast<double>(n) - count / 2) + (width - thickness) / 2;
            const double from = down(std::max(0.0, value)), to = down(std::min(0.0, value));
            result_ += "<rect x=\"" + number(x) + "\" y=\"" + number(from) + "\" width=\"" + number(thickness) +
                       "\" height=\"" + number(std::max(0.5, to - from), 2) + "\" rx=\"1.5\" " + fill(n, "bar ") + ">" +
                       tooltip(line, group) + "</rect>\n";
            const double middle = x + thickness / 2, size = labels_.size;
            if (size == 0) continue;
            const std::string look = std::string(" class=\"tick\"") + (size < 12 ? " style=\"font-size: 10px\"" : "");
            if (labels_.upright)
                result_ += chart_text(value_name(value), 0, 0, value < 0 ? 1 : -1,
                                      look + " transform=\"translate(" + number(middle + 0.36 * size) + " " +
                                          number(value < 0 ? to + 4 : from - 4) + ") rotate(-90)\"");
            else
                result_ += chart_text(value_name(value), middle, value < 0 ? to + 1 + size : from - 5, 0, look);
        }
    }

    const chart& picture_;
    std::size_t groups_;
    double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0, widest_group_ = 0;
    double below_ = 0;   // space for numbers below bars
    bool whole_ = true;  // all ys
    axis x_, y_;
    value_labels labels_;
    std::string result_, hits_;
};

}  // namespace detail

/// A chart as one SVG file, with ticks at round numbers, a legend, and tooltips with the value under the pointer
/// ("additive: 31.2 at 12000"). Light or dark according to the browser; light by default.
///
///     view::svg(view::chart{.x_label = "minutes", .y_label = "BLEU", .all = {{"additive", minutes, bleu}}})
///     view::svg(view::chart{.y_label = "BLEU", .all = {{"additive", {}, bleu}}, .groups = {"1-10", "11-20"}, .bars =
///     true})
///
/// Points are joined in the given order; large numbers of points are reduced to the visible ones. Throws shape_error if
/// the lengths of a series do not match, and error for bars without groups, or a width or height that is not above 0
/// and at most 1e6.
inline std::string svg(const chart& picture)
{
    detail::require_fit(picture);
    return detail::chart_drawing(picture).draw();
}

}  // namespace heed::inline HEED_TARGET::view
