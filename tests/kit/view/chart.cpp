// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/random.hpp>
#include <heed_kit/view/chart.hpp>

#include <support/markup.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using heed::view::chart;
using heed::view::series;
using heed::view::svg;
using heed::view::detail::axis;
using support::count;
using support::fault;

namespace {

std::string ticks(double low, double high, std::size_t most, bool rounded = true, bool whole = false)
{
    const axis scale = axis::over(low, high, most, rounded, whole);
    std::string result;
    for (const double tick : scale.ticks) result += (result.empty() ? "" : " ") + scale.name(tick);
    return result;
}

/// The texts below the lowest line of a chart, from left to right: the tick labels of the x axis.
std::string x_ticks(const std::vector<double>& xs)
{
    const std::string picture = svg(chart{.all = {{"", xs, std::vector<double>(xs.size(), 1.0)}}});
    CHECK(fault(picture) == "");
    std::string result;
    for (std::size_t at = picture.find("text-anchor=\"middle\""); at != std::string::npos;
         at = picture.find("text-anchor=\"middle\"", at + 1)) {
        const std::size_t begin = picture.find('>', at) + 1;
        result += (result.empty() ? "" : " ") + picture.substr(begin, picture.find('<', begin) - begin);
    }
    return result;
}

/// A number in a chart: its position and size.
struct written {
    double x, y, width, height;
};

/// The numbers above bars, as boxes, in the widest font.
std::vector<written> values(const std::string& picture)
{
    std::vector<written> result;
    const auto after = [](const std::string& text, const std::string& key) {
        return std::stod(text.substr(text.find(key) + key.size()));
    };
    for (std::size_t at = picture.find("</rect>\n<text"); at != std::string::npos;
         at = picture.find("</rect>\n<text", at + 1)) {
        const std::string text = picture.substr(at + 8, picture.find("</text>", at) - at - 8);
        const std::string name = text.substr(text.rfind('>') + 1);
        const double size = text.find("font-size: 10px") == std::string::npos ? 12 : 10;
        double width = 0;
        for (const char c : name) width += size * (c == '.' ? 0.318 : 0.636);  // DejaVu Sans
        if (text.find("rotate(-90)") == std::string::npos) {
            result.push_back(
                {after(text, " x=\"") - width / 2, after(text, " y=\"") - 0.75 * size, width, 0.75 * size});
        } else {
            const std::size_t place = text.find("translate(") + 10;
            const double x = std::stod(text.substr(place)), y = std::stod(text.substr(text.find(' ', place)));
            result.push_back({x - 0.75 * size, y - width, 0.75 * size, width});
        }
    }
    return result;
}

}  // namespace

TEST_CASE("ticks are at round numbers")
{
    CHECK(ticks(0, 38.2, 6) == "0 10 20 30 40");
    CHECK(ticks(0, 10, 10) == "0 1 2 3 4 5 6 7 8 9 10");
    CHECK(ticks(0.1, 0.3, 4) == "0.10 0.15 0.20 0.25 0.30");
    CHECK(ticks(-7, 12, 5) == "-10 -5 0 5 10 15");
    CHECK(ticks(500, 15000, 5, false) == "5000 10\u202F000 15\u202F000");
    CHECK(ticks(0, 1'250'000, 3, false) == "0 500\u202F000 1\u202F000\u202F000");
    CHECK(ticks(-1'500'000, 0, 2) == "-2\u202F000\u202F000 -1\u202F000\u202F000 0");
    CHECK(ticks(0, 3e9, 3) == "0 1e+09 2e+09 3e+09");
    CHECK(ticks(0.03, 0.45, 2, false) == "0.2 0.4");
    CHECK(ticks(1, 1, 4) == "0.90 0.95 1.00 1.05 1.10");                            // one value: some space around it
    CHECK(ticks(0, 0, 2) == "0.0 0.5 1.0");                                         // values are not below 0
    CHECK(ticks(std::numeric_limits<double>::infinity(), -1, 2) == "0.0 0.5 1.0");  // no values
}

TEST_CASE("ticks of numbers far from 0, huge, or too close together")
{
    CHECK(ticks(1.7e9, 1.7e9 + 3600, 4, false, true) == "1.7e+09 1.700001e+09 1.700002e+09 1.700003e+09 1.700004e+09");
    CHECK(ticks(1e18, 1e18 + 4e6, 4, false, true) ==
          "1e+18 1.000000000001e+18 1.000000000002e+18 1.000000000003e+18 1.000000000004e+18");
    CHECK(ticks(1e16, 1e16 + 2, 2) == "9e+15 1e+16 1.1e+16");  // treated as one value
    CHECK(ticks(1e16, 1e16, 2, false, true) == "9e+15 1e+16 1.1e+16");
    CHECK(ticks(-1e308, 1e308, 4) == "-1e+308 -5e+307 0 5e+307 1e+308");
    constexpr double max = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
    CHECK(ticks(-max, max, 2) == "-1e+308 0 1e+308");
    CHECK(ticks(0, max, 4, false) == "0 5e+307 1e+308 1.5e+308");
    CHECK(ticks(0, least, 2) == "0.0 0.5 1.0");
    CHECK(ticks(-least, least, 2) == "0.0 0.5 1.0");
    CHECK(ticks(0, 3e-9, 3) == "0 1e-09 2e-09 3e-09");
}

TEST_CASE("ticks of integers are integers, each of a few has a tick, and the last is near a tick")
{
    CHECK(ticks(1, 3, 8, false, true) == "1 2 3");
    CHECK(ticks(1, 3, 8, false) == "1.0 1.5 2.0 2.5 3.0");
    CHECK(ticks(4, 4, 8, true, true) == "3 4 5");
    CHECK(x_ticks({1}) == "0 1 2");
    CHECK(x_ticks({1, 2}) == "1 2");
    CHECK(x_ticks({1, 2, 3}) == "1 2 3");
    CHECK(x_ticks({1, 2, 2.5, 3}) == "1.0 1.5 2.0 2.5 3.0");
    CHECK(x_ticks({1, 2, 3, 4, 5, 6, 7}) == "0 1 2 3 4 5 6 7");
    CHECK(x_ticks({1, 6, 11}) == "0 1 2 3 4 5 6 7 8 9 10 11");
    CHECK(x_ticks({1, 20, 39}) == "0 10 20 30 40");
    CHECK(x_ticks({454, 908, 5902}) == "0 1000 2000 3000 4000 5000 6000");
    CHECK(x_ticks({454, 908, 5448}) == "0 1000 2000 3000 4000 5000");
}

TEST_CASE("if all BLEU scores are 0, their axis starts at 0")
{
    const std::string picture = svg(chart{.all = {{"additive", {1, 2, 3}, {0, 0, 0}}}});
    CHECK(count(picture, ">-") == 0);
    CHECK(count(picture, ">1.0</text>") == 1);
}

TEST_CASE("lines have a path, and a tooltip at each point")
{
    const std::string picture =
        svg(chart{.title = "BLEU",
                  .x_label = "updates",
                  .y_label = "percent",
                  .all = {{"additive", {1000, 2000, 3000}, {10, 20, 25.5}}, {"temporal", {1000, 2000}, {12, 22}}}});
    CHECK(fault(picture) == "");
    CHECK(count(picture, "<title>additive: 25.5 at 3000</title>") == 1);
    CHECK(count(picture, "<title>") == 5);
    CHECK(count(picture, "stroke-linejoin=\"round\"") == 2);
    for (const char* text : {">BLEU</text>", ">updates</text>", ">percent</text>", ">additive</text>",
                             ">temporal</text>", ">2000</text>", ">20</text>"})
        CHECK_MESSAGE(count(picture, text) == 1, text);
    CHECK(count(picture, "prefers-color-scheme: dark") == 1);

    // Higher values are higher up, later values are further to the right.
    const std::size_t path = picture.find(" d=\"M", picture.find("stroke-linejoin"));
    REQUIRE(path != std::string::npos);
    double x = 0, y = 1e9;
    std::size_t at = path + 4, points = 0;
    for (; picture[at] != '"'; ++points) {
        std::size_t length = 0;
        const double next_x = std::stod(picture.substr(at + 1), &length);
        at += 1 + length;
        const double next_y = std::stod(picture.substr(at), &length);
        at += length;
        CHECK(next_x > x);
        CHECK(next_y < y);
        x = next_x, y = next_y;
    }
    CHECK(points == 3);
}

TEST_CASE("for any numbers, the picture has a bounded size and contains all points")
{
    constexpr double infinity = std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::max(),
                     nan = std::numeric_limits<double>::quiet_NaN(), least = std::numeric_limits<double>::denorm_min(),
                     normal = std::numeric_limits<double>::min();
    const auto check = [](const std::vector<double>& xs, const std::vector<double>& ys) {
        std::string numbers;
        for (const auto& each : {xs, ys})
            for (const double value : each) numbers += axis::general(value, 17) + " ";
        CAPTURE(numbers);
        const std::vector<std::string> names(ys.size(), "group");
        for (const std::string& picture :
             {svg(chart{.all = {{"line", xs, ys}}}), svg(chart{.all = {{"line", {}, ys}}, .groups = names}),
              svg(chart{.all = {{"bar", {}, ys}}, .groups = names, .bars = true})}) {
            CHECK(fault(picture) == "");
            CHECK(picture.size() < 20'000);
            const std::size_t lines = count(picture, "class=\"grid\"");
            CHECK(lines >= 2);
            CHECK(lines <= 40);
            for (const char* coordinate : {" cx=\"", " cy=\"", " y=\"", " height=\""})
                for (std::size_t at = picture.find(coordinate); at != std::string::npos;
                     at = picture.find(coordinate, at + 1)) {
                    const double place = std::stod(picture.substr(picture.find('"', at) + 1));
                    CHECK(place >= -1);
                    CHECK(place <= 761);
                }
        }
    };
    // A time in nanoseconds, a loss that has diverged, one value, no value, and the limits of double.
    const std::vector<std::vector<double>> hostile{{1.7e18, 1.7e18 + 3.6e12, 1.7e18 + 7.2e12},
                                                   {1.7e18, 1.7e18 + 256, 1.7e18 + 512},
                                                   {1e16, 1e16 + 2, 1e16 + 4},
                                                   {5, 1e308, infinity},
                                                   {1e308, -1e308, 0},
                                                   {max, max, max},
                                                   {-max, max, 1},
                                                   {max, std::nextafter(max, 0.0), max},
                                                   {least, 2 * least, 3 * least},
                                                   {normal, -normal, least},
                                                   {-least, -least, -0.0},
                                                   {1e-300, 1e300, 1},
                                                   {1e-15, 2e-15, 3e-15},
                                                   {0.1 + 0.2, 0.3, 0.3},
                                                   {nan, 3, -infinity},
                                                   {nan, nan, nan}};
    for (const auto& xs : hostile)
        for (const auto& ys : hostile) check(xs, ys);
    for (const double value : {0.0, 1.0, -1e16, max, -max, least, 1.7e18, nan}) check({value}, {value});
    for (std::uint64_t i = 0; i < 2000; i += 6) {
        const auto any = [i](std::uint64_t n) { return std::bit_cast<double>(heed::mix(i + n)); };
        check({any(0), any(1), any(2)}, {any(3), any(4), any(5)});
    }
}

TEST_CASE("NaN leaves a gap")
{
    constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    const std::string picture = svg(chart{.all = {{"a", {0, 1, 2, 3, 4, nan}, {1, 2, nan, 3, infinity, 5}}}});
    CHECK(fault(picture) == "");
    CHECK(count(picture, "<title>") == 3);
    CHECK(count(picture, "nan") == 0);
    CHECK(count(picture, "inf") == 0);
    const std::size_t path = picture.find(" d=\"M", picture.find("stroke-linejoin"));
    const std::string line = picture.substr(path, picture.find("/>", path) - path);
    CHECK(count(line, "M") == 2);
    CHECK(count(line, "L") == 1);
    CHECK(fault(svg(chart{.all = {{"nothing", {0}, {nan}}}})) == "");
}

TEST_CASE("the number of drawn points is limited, and no extreme is lost")
{
    series noisy{"loss", {}, {}};
    for (int i = 0; i < 50'000; ++i) {
        noisy.xs.push_back(i);
        noisy.ys.push_back(std::sin(0.37 * i));
    }
    noisy.ys[31'234] = 9;  // one outlier
    const std::string picture = svg(chart{.all = {noisy}, .width = 400});
    CHECK(fault(picture) == "");
    CHECK(picture.size() < 60'000);
    CHECK(count(picture, "<title>") <= 202);
    // It reaches up to the outlier, near the end of the axis at 10. All other points are below 1.
    const std::size_t path = picture.find(" d=\"M", picture.find("stroke-linejoin"));
    double highest = 1e9;
    for (std::size_t at = picture.find(' ', path + 5); at < picture.find('"', path + 5); at = picture.find(' ', at + 1))
        highest = std::min(highest, std::stod(picture.substr(at + 1)));
    CHECK(highest < 100);
}

TEST_CASE("groups have bars and lines above names")
{
    chart picture{.y_label = "BLEU",
                  .all = {{"additive", {}, {36.1, 20}}, {"temporal", {}, {36.4, -3}}},
                  .groups = {"1-10", "11+"},
                  .bars = true};
    const std::string bars = svg(picture);
    CHECK(fault(bars) == "");
    CHECK(count(bars, "class=\"bar f") == 4);
    CHECK(count(bars, "<title>temporal: -3 at 11+</title>") == 1);
    CHECK(count(bars, ">36.1</text>") == 1);
    CHECK(count(bars, ">20.0</text>") == 1);
    CHECK(count(bars, ">11+</text>") == 1);
    picture.bars = false;
    const std::string lines = svg(picture);
    CHECK(fault(lines) == "");
    CHECK(count(lines, "class=\"bar f") == 0);
    CHECK(count(lines, "<title>additive: 36.1 at 1-10</title>") == 1);

    // Names that are too long for their space are slanted.
    CHECK(count(bars, "rotate(-45)") == 0);
    picture.groups[0] = std::string(70, 'x');
    CHECK(count(svg(picture), "rotate(-45)") == 2);
}

TEST_CASE("numbers above bars do not touch, and are omitted only if there is no space")
{
    std::size_t upright = 0;
    for (std::size_t systems = 1; systems <= 9; ++systems)
        for (std::size_t groups = 1; groups <= 8; ++groups)
            for (const double top : {44.4, 100.0}) {
                chart picture{
                    .y_label = "BLEU", .all = {}, .groups = std::vector<std::string>(groups, "g"), .bars = true};
                for (std::size_t n = 0; n < systems; ++n)
                    picture.all.push_back(
                        {"system", {}, std::vector<double>(groups, top - 0.3 * static_cast<double>(n))});
                picture.all[0].ys[0] = top;
                const std::string text = svg(picture);
                CHECK(fault(text) == "");
                const std::vector<written> all = values(text);
                CAPTURE(systems);
                CAPTURE(groups);
                CAPTURE(top);
                upright += count(text, "rotate(-90)");
                if (systems * groups <= 40) CHECK(all.size() == systems * groups);
                bool touching = false;
                for (std::size_t i = 0; i < all.size(); ++i) {
                    CHECK(all[i].y > 20 + 20);  // below the legend
                    for (std::size_t j = i + 1; j < all.size(); ++j)
                        touching =
                            touching ||
                            (all[i].x < all[j].x + all[j].width + 1.5 && all[j].x < all[i].x + all[i].width + 1.5 &&
                             all[i].y < all[j].y + all[j].height && all[j].y < all[i].y + all[i].height);
                }
                CHECK_FALSE(touching);
            }
    CHECK(upright > 0);
    // Numbers below the axis stay above the groups' names.
    const chart negative{.all = {{"a", {}, {-10}}}, .groups = {"name"}, .bars = true};
    const std::string text = svg(negative);
    const std::size_t name = text.find(">name</text>");
    REQUIRE(name != std::string::npos);
    const std::size_t y = text.rfind(" y=\"", name);
    REQUIRE(values(text).size() == 1);
    CHECK(values(text)[0].y + values(text)[0].height < std::stod(text.substr(y + 4)) - 9);
}

TEST_CASE("hostile and right-to-left names, an empty chart, and many series")
{
    chart picture{
        .title = "</title><b>&\"", .y_label = "שלום", .all = {{"<i>\x1B", {0, 1}, {0, 1}}, {"سلام", {0, 1}, {1, 0}}}};
    CHECK(fault(svg(picture)) == "");
    CHECK(count(svg(picture), "direction=\"rtl\"") == 2);
    CHECK(fault(svg(chart{})) == "");
    picture.all.clear();
    for (int i = 0; i < 30; ++i) picture.all.push_back({"run " + std::to_string(i), {0, 1}, {0.0, 1.0 * i}});
    const std::string many = svg(picture);
    CHECK(fault(many) == "");
    CHECK(count(many, "stroke-dasharray=\"7 4\"") == 2 * 8);  // in the legend and in the plot
    picture.width = picture.height = 10;                      // no room at all
    CHECK(fault(svg(picture)) == "");
}

TEST_CASE("a chart with inconsistent parts is rejected")
{
    CHECK_THROWS_WITH_AS(svg(chart{.all = {{"a", {0, 1}, {0}}}}), "view::svg: series a has 1 y, but 2 xs",
                         heed::shape_error);
    CHECK_THROWS_WITH_AS(svg(chart{.all = {{"a", {}, {0}}}, .groups = {"x", "y"}}),
                         "view::svg: series a has 1 y, but 2 groups", heed::shape_error);
    CHECK_THROWS_AS(svg(chart{.all = {{"a", {0}, {0}}}, .groups = {"x"}}), heed::shape_error);
    CHECK_THROWS_AS(svg(chart{.bars = true}), heed::error);
    for (const double side : {0.0, -1.0, 1e300, std::nan(""), std::numeric_limits<double>::infinity()}) {
        CHECK_THROWS_AS(svg(chart{.width = side}), heed::error);
        CHECK_THROWS_AS(svg(chart{.height = side}), heed::error);
    }
}
