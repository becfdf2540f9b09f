// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/metrics/tokenize_13a.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace {

std::string tokens(std::string_view line) { return heed::text::join(heed::metrics::tokenize_13a(line)); }

}  // namespace

TEST_CASE("punctuation becomes tokens, except in numbers and abbreviations")
{
    CHECK(tokens("The dog bit the man.") == "The dog bit the man .");
    CHECK(tokens("It wasn't surprising.") == "It wasn't surprising .");
    CHECK(tokens("\"Yes\", (he) said; why?") == "\" Yes \" , ( he ) said ; why ?");
    CHECK(tokens("1,000.5 euros, 3.") == "1,000.5 euros , 3 .");
    CHECK(tokens("a.b,c .5 5.x") == "a . b , c . 5 5 . x");
    CHECK(tokens("well-known 5-year -5 5 - x") == "well-known 5 - year -5 5 - x");
    CHECK(tokens("a/b@c#d$e%f^g*h+i=j") == "a / b @ c # d $ e % f ^ g * h + i = j");
    CHECK(tokens("{a|b}~[c\\d]_`e`<f>!&") == "{ a | b } ~ [ c \\ d ] _ ` e ` < f > ! &");
}

TEST_CASE("each rule scans the line once")
{
    CHECK(tokens("...") == ". . .");
    CHECK(tokens("a...") == "a . . .");
    CHECK(tokens("1..2") == "1 . . 2");
    CHECK(tokens("1.,2") == "1 . , 2");
    CHECK(tokens("x.") == "x .");
    CHECK(tokens("5--6") == "5 - -6");
}

TEST_CASE("entities are decoded in mteval's order, and <skipped> is dropped")
{
    CHECK(tokens("&quot;a&quot; &lt;b&gt; c &amp; d") == "\" a \" < b > c & d");
    CHECK(tokens("&amp;lt; &amp;amp; &amp;quot;") == "< & amp ; & quot ;");
    CHECK(tokens("a <skipped> b<skipped>c") == "a bc");
    CHECK(tokens("&apos;") == "& apos ;");
}

TEST_CASE("non-ASCII letters are letters; white space is Unicode's")
{
    CHECK(tokens("Größe: naß.") == "Größe : naß .");
    CHECK(tokens("«a»…") == "«a»…");
    CHECK(tokens("ü.ä,5") == "ü . ä , 5");
    CHECK(tokens("a\u00A0b\u3000c\u2003d\te") == "a b c d e");
    CHECK(tokens("a\u200Bb") == "a\u200Bb");  // a zero-width space is not white space
}

TEST_CASE("an empty line has no tokens")
{
    CHECK(tokens("").empty());
    CHECK(tokens(" \t ").empty());
    CHECK(tokens("<skipped>").empty());
}
