// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/utf8.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace text = heed::text;

static_assert(!text::find_invalid_utf8("plain"));
static_assert(text::display_width(std::string_view("abc")) == 3);

TEST_CASE("valid UTF-8 of every length is accepted")
{
    CHECK_FALSE(text::find_invalid_utf8(""));
    CHECK_FALSE(text::find_invalid_utf8("dreißig"));
    CHECK_FALSE(
        text::find_invalid_utf8("\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xEF\xBF\xBF \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"));
    CHECK_FALSE(text::find_invalid_utf8("\xED\x9F\xBF\xEE\x80\x80"));  // the neighbours of the surrogates
}

TEST_CASE("invalid UTF-8 is found at its byte")
{
    const auto at = [](std::string_view line) { return text::find_invalid_utf8(line).value_or(9999); };
    CHECK(at("\xFF") == 0);
    CHECK(at("caf\xE9 noir") == 3);      // Latin-1
    CHECK(at("ß\x80") == 2);             // a continuation byte without a start
    CHECK(at("a\xC3") == 1);             // cut off
    CHECK(at("a\xE2\x82") == 1);         // cut off
    CHECK(at("a\xF0\x9F\x98") == 1);     // cut off
    CHECK(at("\xC0\xAF") == 0);          // overlong "/"
    CHECK(at("\xC1\xBF") == 0);          // overlong
    CHECK(at("\xE0\x9F\xBF") == 0);      // overlong
    CHECK(at("\xF0\x8F\xBF\xBF") == 0);  // overlong
    CHECK(at("\xED\xA0\x80") == 0);      // surrogate
    CHECK(at("\xF4\x90\x80\x80") == 0);  // above U+10FFFF
    CHECK(at("\xF5\x80\x80\x80") == 0);  // above U+10FFFF
    CHECK(at("\xE2\x28\xA1") == 0);      // a wrong second byte
    CHECK(at("\xE2\x82\x28") == 0);      // a wrong third byte
    CHECK(at("\xF0\x9F\x98\x28") == 0);  // a wrong fourth byte
}

TEST_CASE("every three-byte sequence that is accepted decodes to a character that encodes back to it")
{
    std::size_t accepted = 0;
    for (unsigned code = 0x800; code <= 0xFFFF; ++code) {
        const std::string bytes{static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
                                static_cast<char>(0x80 | (code & 0x3F))};
        const text::utf8_character character = text::utf8_at(bytes, 0);
        const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
        if (character.valid == surrogate || (character.valid && character.code != code)) FAIL("U+" << code);
        accepted += character.valid;
    }
    CHECK(accepted == 0x10000 - 0x800 - 0x800);
}

TEST_CASE("display width: combining marks take no column, East Asian characters two")
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
    CHECK(width("हिन्दी") == 5);  // the virama takes none
    CHECK(width("…") == 1);
    CHECK(width("😀") == 2);
    CHECK(width("a\xFF") == 2);
}

TEST_CASE("the direction is that of the first letter that has one")
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

TEST_CASE("printable text cannot control the terminal")
{
    CHECK(text::printable("größer 日本") == "größer 日本");
    CHECK(text::printable("a\x1B[2Jb") == "a\xEF\xBF\xBD[2Jb");
    CHECK(text::printable(std::string("a\0b", 3)) == "a\xEF\xBF\xBD"
                                                     "b");
    CHECK(text::printable("\xC2\x9B") == "\xEF\xBF\xBD");  // U+009B, the one-character escape sequence
    CHECK(text::printable("x\xFFy") == "x\xEF\xBF\xBDy");
    CHECK(text::printable("a\xE2\x80\xAE"
                          "b") == "ab");  // right-to-left override
}
