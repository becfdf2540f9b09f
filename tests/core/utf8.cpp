// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/utf8.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace text = heed::text;

static_assert(!text::find_invalid_utf8("plain"));

TEST_CASE("valid UTF-8 of every length is accepted")
{
    CHECK_FALSE(text::find_invalid_utf8(""));
    CHECK_FALSE(text::find_invalid_utf8("dreißig"));
    CHECK_FALSE(
        text::find_invalid_utf8("\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xEF\xBF\xBF \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"));
    CHECK_FALSE(text::find_invalid_utf8("\xED\x9F\xBF\xEE\x80\x80"));  // the neighbors of the surrogates
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
