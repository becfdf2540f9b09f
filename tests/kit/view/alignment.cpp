// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/view/shades.hpp>
#include <heed_kit/view/svg.hpp>

#include <support/markup.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

using heed::view::alignment;
using heed::view::labels;
using heed::view::shades;
using heed::view::svg;
using support::count;
using support::fault;

namespace {

using words = std::vector<std::string>;
using links = std::vector<std::pair<int, int>>;

struct example {
    words source{"one", "hundred", "four"}, target{"ein", "und", "vier"};
    std::vector<float> weights{0.9f, 0.1f,  0.0f,   //
                               0.3f, 0.04f, 0.66f,  //
                               0.0f, 0.25f, 0.75f};
    links gold{{0, 0}, {1, 1}};
};

}  // namespace

TEST_CASE("the small XML reader finds errors")
{
    CHECK(fault("<a b=\"1\"><c/>x &amp; y</a>\n") == "");
    for (const char* bad : {"<a>", "<a></b>", "<a/><b/>", "<a b=1/>", "<a b=\"1\" b=\"2\"/>", "<a>&</a>", "<a>\x01</a>",
                            "<a b=\"<\"/>", "<a b=\"&x\"/>", "<a>\xFF</a>", "</a>", ""})
        CHECK_MESSAGE(fault(bad) != "", bad);
}

TEST_CASE("shades: words on both axes, one block per weight")
{
    const example e;
    CHECK(shades({.weights = e.weights, .source = e.source, .target = e.target}) == "        ╭ one\n"
                                                                                    "        │ ╭ hundred\n"
                                                                                    "        │ │ ╭ four\n"
                                                                                    "   ein  ██░░\n"
                                                                                    "   und  ▒▒  ▓▓\n"
                                                                                    "  vier    ▒▒██\n");
}

TEST_CASE("shades: title and gold links")
{
    const example e;
    CHECK(shades({e.weights, e.source, e.target, e.gold, "104"}) == "104\n"
                                                                    "        ╭ one\n"
                                                                    "        │ ╭ hundred\n"
                                                                    "        │ │ ╭ four\n"
                                                                    "   ein  █◆░░\n"
                                                                    "   und  ▒▒ ◆▓▓\n"
                                                                    "  vier    ▒▒██\n");
}

TEST_CASE("shades: upright labels")
{
    const example e;
    const std::string expected = "          h\n"
                                 "          u\n"
                                 "          n\n"
                                 "          d f\n"
                                 "        o r o\n"
                                 "        n e u\n"
                                 "        e d r\n"
                                 "   ein  ██░░\n"
                                 "   und  ▒▒  ▓▓\n"
                                 "  vier    ▒▒██\n";
    CHECK(shades({e.weights, e.source, e.target}, labels::upright) == expected);
}

TEST_CASE("shades: labels are upright for long sentences, slanted for short ones")
{
    const auto first_line = [](std::size_t length) {
        const words source(length, "abc"), target{"x"};
        const std::vector<float> weights(length, 0.f);
        const std::string picture = shades({weights, source, target});
        return picture.substr(0, picture.find('\n'));
    };
    CHECK(first_line(16) == "     ╭ abc");
    CHECK(first_line(17).starts_with("     a a a"));
}

TEST_CASE("shades: columns are aligned in any script")
{
    const words source{"世界", "e\xCC\x81t\xC3\xA9", "x"}, target{"こんにちは", "שָׁלוֹם", "a"};
    const std::vector<float> weights(9, 1.f);
    for (const labels style : {labels::stairs, labels::upright}) {
        std::istringstream lines(shades({weights, source, target}, style));
        std::vector<std::size_t> widths;
        for (std::string line; std::getline(lines, line);)
            if (line.ends_with("██")) widths.push_back(heed::text::display_width(line));
        CHECK(widths == std::vector<std::size_t>(3, 2 + 10 + 2 + 6));
    }
    // The accent stays with its letter, and a wide character fills its column.
    const std::string upright = shades({weights, source, target}, labels::upright);
    CHECK(upright.starts_with("                e\xCC\x81\n              世t\n              界é x\n"));
}

TEST_CASE("shades: words that could break the picture are escaped")
{
    const words source{"a\x1B[31m"}, target{std::string(60, 'y')};
    const std::vector<float> weights{std::numeric_limits<float>::quiet_NaN()};
    CHECK(shades({weights, source, target}) ==
          "                            ╭ a\xEF\xBF\xBD[31m\n  " + std::string(23, 'y') + "…  ??\n");
}

TEST_CASE("an alignment with inconsistent parts is rejected")
{
    const example e;
    const words two{"a", "b"};
    CHECK_THROWS_WITH_AS(shades({e.weights, two, e.target}),
                         "view::shades: 9 weights, but 3 target and 2 source words need 6", heed::shape_error);
    CHECK_THROWS_AS(svg(alignment{e.weights, e.source, two}), heed::shape_error);
    for (const links& outside : {links{{3, 0}}, links{{0, 3}}, links{{-1, 0}}, links{{0, -1}}}) {
        CHECK_THROWS_AS(shades({e.weights, e.source, e.target, outside}), heed::shape_error);
        CHECK_THROWS_AS(svg(alignment{e.weights, e.source, e.target, outside}), heed::shape_error);
    }
}

TEST_CASE("svg: a cell for each visible weight, with its tooltip, and a square for each gold link")
{
    const example e;
    const std::string picture = svg(alignment{e.weights, e.source, e.target, e.gold, "104"});
    CHECK(fault(picture) == "");
    CHECK(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" "));
    CHECK(count(picture, "class=\"cell\"") == 7);  // two of the nine weights are 0
    CHECK(count(picture, "<title>") == 7);
    CHECK(count(picture, "<title>ein ← one: 0.90</title>") == 1);
    CHECK(count(picture, "<title>und ← four: 0.66</title>") == 1);
    CHECK(count(picture, "class=\"gold\"") == 2 + 1);  // and one in the legend
    for (const std::string& word : e.source) CHECK(count(picture, ">" + word + "</text>") == 1);
    for (const std::string& word : e.target) CHECK(count(picture, ">" + word + "</text>") == 1);
    CHECK(count(picture, "fill=\"#ffffff\"") == 1);

    const std::string plain = svg(alignment{e.weights, e.source, e.target});
    CHECK(count(plain, "class=\"gold\"") == 0);
    CHECK(count(plain, "class=\"title\"") == 0);
}

TEST_CASE("svg: a weight of exactly 0 is a hollow cell, a small one is not")
{
    const words source{"a", "b", "c"}, target{"x", "y"};
    const auto hollow = [&](const std::vector<float>& weights) {
        const std::string picture = svg(alignment{weights, source, target});
        CHECK(fault(picture) == "");
        const std::size_t at = picture.find("<path stroke=\"url(#zeros)\"");
        return at == std::string::npos ? "" : picture.substr(at, picture.find("/>", at) - at);
    };
    // Runs of cells of 26 pixels: two in the first row, one in the second.
    CHECK(hollow({0, -0.f, 1, 0.02f, 0, 0.98f}) ==
          "<path stroke=\"url(#zeros)\" stroke-width=\"26\" d=\"M0 13h52M26 39h26\"");
    CHECK(hollow({1e-30f, 0.001f, 1, 0.02f, -1, std::numeric_limits<float>::quiet_NaN()}) == "");
    const std::vector<float> weights{0, 0.02f, 1, 1, 0, 0};
    const std::string picture = svg(alignment{weights, source, target});
    CHECK(count(picture, "<path stroke=\"url(#cells)\" stroke-width=\"26\" d=\"M26 13h52M0 39h26\"/>") == 1);
    CHECK(count(picture, "class=\"zero\"") == 2);  // the style of such cells, and the legend
    CHECK(count(picture, "id=\"zeros\"") == 1);
    CHECK(count(picture, "class=\"cell\"") == 3);
}

TEST_CASE("svg: alignments are side by side if there is room")
{
    const example e;
    const std::vector<alignment> all(4, alignment{e.weights, e.source, e.target, {}, "one"});
    const auto width = [](const std::string& picture) {
        const std::string_view head = "class=\"heed\" width=\"";
        return std::stod(picture.substr(picture.find(head) + head.size()));
    };
    const auto places = [](const std::string& picture) {  // columns, rows
        std::set<std::string> x, y;
        const std::string_view mark = "data-size=";
        for (std::size_t at = picture.find(mark); at != std::string::npos; at = picture.find(mark, at + 1)) {
            const std::size_t begin = picture.find("translate(", at) + 10, middle = picture.find(' ', begin);
            x.insert(picture.substr(begin, middle - begin));
            y.insert(picture.substr(middle, picture.find(')', middle) - middle));
        }
        return std::pair(x.size(), y.size());
    };
    const std::string below = svg(all);
    CHECK(places(below) == std::pair<std::size_t, std::size_t>(1, 4));
    const double panel = std::stod(below.substr(below.find("data-size=\"") + 11)), between = 40, margins = 48;
    for (const auto& [across, columns, rows] : {std::tuple<double, std::size_t, std::size_t>{0, 1, 4},
                                                {2 * panel + between - 1, 1, 4},
                                                {2 * panel + between, 2, 2},
                                                {3 * panel + 2 * between, 2, 2},  // not three and one
                                                {4 * panel + 3 * between, 4, 1},
                                                {1e9, 4, 1}}) {
        const std::string picture = svg(all, across);
        CHECK(fault(picture) == "");
        CHECK(places(picture) == std::pair(columns, rows));
        CHECK(count(picture, "attention weight") == 1);
        if (columns > 1)
            CHECK(width(picture) == margins + double(columns) * (panel + between) - between);  // whole pixels
    }
    CHECK(count(svg(all[0]), "data-size") == 0);
    CHECK(svg(std::vector<alignment>{}, 1000) == svg(std::vector<alignment>{}));
}

TEST_CASE("svg: larger weights have more ink")
{
    const words one{"a"};
    const auto cell = [&](float weight) {
        const std::vector<float> weights{weight};
        const std::string picture = svg(alignment{weights, one, one});
        const std::size_t at = picture.find("<rect class=\"cell");
        REQUIRE(at != std::string::npos);
        return picture.substr(at, picture.find(" x=", at) - at);
    };
    CHECK(cell(1.0f) == "<rect class=\"cell\"");
    CHECK(cell(7.0f) == cell(1.0f));
    CHECK(cell(0.5f) == cell(1.0f) + " fill-opacity=\".5\"");
    CHECK(cell(0.256f) == cell(1.0f) + " fill-opacity=\".256\"");
    CHECK(cell(0.01f) == cell(1.0f) + " fill-opacity=\".01\"");
    CHECK(cell(std::numeric_limits<float>::quiet_NaN()) == "<rect class=\"cell bad\" fill=\"#ffa8a8\"");
    const std::vector<float> half{0.5f};
    const std::string picture = svg(alignment{half, one, one});
    CHECK(picture.find("<g class=\"ink\" fill=\"#14181f\">") < picture.find("<rect class=\"cell"));
}

TEST_CASE("svg: every color has a dark-mode counterpart")
{
    const example e;
    std::vector<float> weights = e.weights;
    weights[0] = std::numeric_limits<float>::quiet_NaN();
    const std::string picture = svg(alignment{weights, e.source, e.target, e.gold, "104"});
    const std::size_t media = picture.find("@media (prefers-color-scheme: dark) {");
    REQUIRE(media != std::string::npos);
    const std::string dark = picture.substr(media, picture.find("</style>") - media);
    for (const char* name : {"paper", "empty", "zero", "ink", "bad", "gold", "from", "to"}) {
        CHECK_MESSAGE(count(dark, ".heed ." + std::string(name) + " { ") == 1, name);
        CHECK_MESSAGE(picture.find(name, picture.find("</style>")) != std::string::npos, name);
    }
    CHECK(count(dark, ".heed text { fill: ") == 1);
    CHECK(count(dark, ".heed text.title { fill: ") == 1);
    CHECK(count(dark, ".heed .legend text { fill: ") == 1);
    // The style sheet covers every drawn element.
    for (std::size_t at = picture.find(" fill=\"#"); at != std::string::npos; at = picture.find(" fill=\"#", at + 1))
        CHECK(picture.substr(picture.rfind('<', at), at - picture.rfind('<', at)).find(" class=\"") !=
              std::string::npos);
}

TEST_CASE("svg: hostile and right-to-left words are escaped and isolated")
{
    const words source{"<b>&\"'", "שלום", std::string("nul\0", 4)}, target{"]]>", "\xFF\xFE", "سلام"};
    const std::vector<float> weights(9, 0.5f);
    const std::string picture = svg(alignment{weights, source, target, {}, "</title> & \x1B"});
    CHECK(fault(picture) == "");
    CHECK(count(picture, "&lt;b&gt;&amp;&quot;'</text>") == 1);
    CHECK(count(picture, "direction=\"rtl\"") == 2);
    // In a tooltip of mixed direction, each word is isolated.
    CHECK(count(picture, "<title>\xE2\x81\xA8]]&gt;\xE2\x81\xA9 ← \xE2\x81\xA8שלום\xE2\x81\xA9: 0.50</title>") == 1);
}

TEST_CASE("svg: several sentences, no sentence, and empty sentences")
{
    const example e;
    const alignment one{e.weights, e.source, e.target, {}, "first"}, empty{};
    const std::vector<alignment> both{one, one, empty};
    const std::string picture = svg(both);
    CHECK(fault(picture) == "");
    CHECK(count(picture, "<title>ein ← one: 0.90</title>") == 2);
    CHECK(count(picture, "attention weight") == 1);
    CHECK(fault(svg(empty)) == "");
    CHECK(fault(svg(std::vector<alignment>{})) == "");
    CHECK(shades(empty) == "");
}

TEST_CASE("svg: NaN is shown as such")
{
    const words one{"a"};
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        const std::vector<float> weights{bad};
        const std::string picture = svg(alignment{weights, one, one});
        CHECK(fault(picture) == "");
        CHECK(count(picture, "a ← a: not a number") == 1);
    }
}
