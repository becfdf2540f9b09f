// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/unicode.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace heed::text;

namespace {

std::vector<std::string> words(const std::string& line)
{
    std::vector<std::string> all;
    for (const segment& each : segments(line)) all.push_back(line.substr(each.begin, each.end - each.begin));
    return all;
}

using list = std::vector<std::string>;

}  // namespace

TEST_CASE("equivalent characters get one spelling")
{
    CHECK(normalize("u\u0308ber") == "über");
    CHECK(normalize("\u212B") == "Å");     // the unit sign
    CHECK(normalize("½ ﬁ …") == "½ ﬁ …");  // compatible, but not canonically equivalent
}

TEST_CASE("white space becomes one space and is trimmed; control characters are removed")
{
    CHECK(normalize("  a\t\u00A0b\u202F\u2003c \r\n") == "a b c");
    CHECK(normalize(std::string("a\0b\x01", 4)) == "ab");
    CHECK(normalize("\uFEFFa\uFEFF") == "a");
    CHECK(normalize("e\u0001\u0301") == "é");  // composed afterwards
    CHECK(normalize(" \u00A0\t").empty());
    CHECK(normalize("").empty());
}

TEST_CASE("invalid UTF-8 is rejected with its position")
{
    CHECK_THROWS_WITH_AS(normalize("ab \xE9t\xE9"), doctest::Contains("byte 4"), heed::error);
    CHECK_THROWS_AS(normalize("\xC0\x80"), heed::error);
    CHECK_THROWS_AS(normalize("\xED\xA0\x80"), heed::error);
    CHECK_THROWS_AS(normalize("a\xF0\x9F"), heed::error);
}

TEST_CASE("words and symbols")
{
    CHECK(words("A man is sleeping.") == list{"A", "man", "is", "sleeping", "."});
    CHECK(words("don't 3.14 1,000.5!?") == list{"don't", "3.14", "1,000.5", "!", "?"});
    CHECK(words("„Ja“, sagte er – leise…") == list{"„", "Ja", "“", ",", "sagte", "er", "–", "leise", "…"});
    CHECK(words("https://a.org/b?c=1") == list{"https", ":", "/", "/", "a.org", "/", "b", "?", "c", "=", "1"});
    CHECK(words("žluťoučký kůň") == list{"žluťoučký", "kůň"});
    CHECK(words("👩\u200D🚀👍🏽 🇩🇪") == list{"👩\u200D🚀", "👍🏽", "🇩🇪"});
    CHECK(words("a \u0308b") == list{"a", "\u0308", "b"});  // a combining mark on a space
    CHECK(words("").empty());
    CHECK(words(" ").empty());
}

TEST_CASE("tokens that are words are recognized")
{
    CHECK(segments("a-1") == std::vector<segment>{{0, 1, true}, {1, 2, false}, {2, 3, true}});
    CHECK(is_word("ß"));
    CHECK(is_word("x_"));
    CHECK_FALSE(is_word("_"));
    CHECK_FALSE(is_word("½"));
    CHECK_FALSE(is_word("\u0301"));
    CHECK_FALSE(is_word(""));
    CHECK_FALSE(is_word("\xFF"));
}

TEST_CASE("letters")
{
    CHECK(lower_case("ÄÖÜ ΣΟΦΟΣ") == "äöü σοφος");
    CHECK(upper_case("straße") == "STRASSE");
    CHECK(title_case("élan vital") == "Élan vital");
    CHECK(title_case("ǆ") == "ǅ");
    CHECK(title_case("“a") == "“a");
    CHECK(title_case("iPhone") == "IPhone");
    CHECK(title_case("").empty());
}
