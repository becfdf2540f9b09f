// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/display.hpp>

#include <doctest/doctest.h>

#include <string_view>

namespace text = heed::text;

static_assert(text::display_width(std::string_view("abc")) == 3);

TEST_CASE("combining marks are 0 columns wide, East Asian characters 2")
{
    const auto width = [](std::string_view word) { return text::display_width(word); };
    CHECK(width("") == 0);
    CHECK(width("dreißig") == 7);
    CHECK(width("e\xCC\x81") == 1);  // e and a combining acute accent
    CHECK(width("日本語") == 6);
    CHECK(width("한국") == 4);
    CHECK(width("ﾊﾝｶｸ") == 4);   // half-width katakana
    CHECK(width("ＡＢ") == 4);   // full-width Latin
    CHECK(width("שָׁלוֹם") == 4);   // Hebrew with points
    CHECK(width("हिन्दी") == 5);  // the virama takes no column
    CHECK(width("…") == 1);
    CHECK(width("😀") == 2);
    CHECK(width("a\xFF") == 2);
}

TEST_CASE("the direction is that of the first letter with a direction")
{
    CHECK(text::is_right_to_left("שלום"));
    CHECK(text::is_right_to_left("مرحبا"));
    CHECK(text::is_right_to_left("(42) سلام abc"));
    CHECK_FALSE(text::is_right_to_left("abc שלום"));
    CHECK_FALSE(text::is_right_to_left("42 ."));
    CHECK_FALSE(text::is_right_to_left("日本 שלום"));
    CHECK_FALSE(text::is_right_to_left("größer"));
    CHECK_FALSE(text::is_right_to_left(""));
}
