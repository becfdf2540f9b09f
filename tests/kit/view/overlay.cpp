// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/view/overlay.hpp>

#include <support/markup.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

using namespace heed;
using support::count;
using view::overlay;

namespace {

/// 2 x 4 pixels under 1 x 2 regions, and two words.
overlay small() { return {"4 < 7", 2, 4, {0, .25f, .5f, 1, 1, .5f, .25f, 0}, 1, 2, {"4", "<7>"}, {.75f, .25f, 0, 1}}; }

std::string refused(const overlay& picture)
{
    try {
        (void)view::svg(picture);
    } catch (const shape_error& problem) {
        return problem.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a PNG file has the expected bytes")
{
    const std::vector<float> pixels{0, 1, 0.5f, 2, -1, std::numeric_limits<float>::quiet_NaN()};
    const std::string is = view::png(2, 3, pixels);
    // from another encoder: zlib's level 0, and its CRC-32 and Adler-32
    const unsigned char must[] = {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49,
                                  0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00,
                                  0x00, 0x00, 0x00, 0xb8, 0x1f, 0x39, 0xc6, 0x00, 0x00, 0x00, 0x13, 0x49, 0x44,
                                  0x41, 0x54, 0x78, 0x01, 0x01, 0x08, 0x00, 0xf7, 0xff, 0x00, 0x00, 0xff, 0x80,
                                  0x00, 0xff, 0x00, 0x00, 0x0b, 0x7f, 0x02, 0x7f, 0xbe, 0x14, 0x15, 0xf3, 0x00,
                                  0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
    CHECK(is == std::string(reinterpret_cast<const char*>(must), sizeof must));
    CHECK_THROWS_AS((void)view::png(2, 2, pixels), shape_error);
    CHECK_THROWS_AS((void)view::png(0, 0, {}), shape_error);
    // more than one stored block, and a checksum that wraps around
    const std::string large = view::png(300, 300, std::vector<float>(90000, 1.0f));
    CHECK(large.size() == 8 + 25 + 12 + (2 + 5 + 5 + 90300 + 4) + 12);
    CHECK(view::detail::adler32(std::string(90000, '\xff')) == 2473477363u);
}

TEST_CASE("base64 of 3, 2, 1 and 0 bytes")
{
    CHECK(view::detail::base64("Man") == "TWFu");
    CHECK(view::detail::base64("Ma") == "TWE=");
    CHECK(view::detail::base64("M") == "TQ==");
    CHECK(view::detail::base64("") == "");
    CHECK(view::detail::base64("\xff\xef\xbe") == "/+++");
}

TEST_CASE("the picture has one panel alone and one per word with its regions")
{
    const std::string picture = view::svg(small(), 10);
    CHECK(support::fault(picture) == "");
    CHECK(count(picture, "<use href=\"#picture0\"/>") == 3);
    CHECK(count(picture, "data:image/png;base64,iVBORw0KGgo") == 1);
    CHECK(count(picture, "4 &lt; 7</text>") == 1);
    CHECK(count(picture, ">&lt;7&gt;</text>") == 1);
    // "4": the left half, and a third of its opacity on the right; "<7>": the right half alone
    CHECK(count(picture,
                "<rect x=\"0.00\" y=\"0.00\" width=\"20.00\" height=\"20.00\" fill-opacity=\"0.800\"><title>4: "
                "0.750</title></rect>") == 1);
    CHECK(count(picture, "<rect x=\"20.00\" y=\"0.00\" width=\"20.00\" height=\"20.00\" "
                         "fill-opacity=\"0.267\"><title>4: 0.250</title></rect>") == 1);
    CHECK(count(picture, "<title>&lt;7&gt;: ") == 1);
    // 48 pixels of margins, three panels of 40 with 12 between; the title, the words, 20 lines
    CHECK(count(picture, "width=\"192\" height=\"114\"") == 1);
}

TEST_CASE("several pictures, a picture without words, and a NaN weight")
{
    overlay wordless = small(), broken = small();
    wordless.words.clear();
    wordless.weights.clear();
    broken.weights[2] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<overlay> all{wordless, broken};
    const std::string picture = view::svg(all);
    CHECK(support::fault(picture) == "");
    CHECK(count(picture, "<use ") == 4);
    CHECK(count(picture, "not a number") == 1);
    CHECK(support::fault(view::svg(std::span<const overlay>{})) == "");
}

TEST_CASE("inconsistent parts are rejected")
{
    overlay picture = small();
    picture.weights.pop_back();
    CHECK(refused(picture) == "view::overlay: 3 weights for 2 words and 1 row of 2 regions; expected one for each "
                              "word and region");
    picture = small();
    picture.pixels.pop_back();
    CHECK(refused(picture) == "view::overlay: 7 pixels, but the picture has 2 rows of 4");
}
