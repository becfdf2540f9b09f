// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/metrics/chrf.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;

namespace {

double score(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
             const chrf_options& how = {})
{
    return chrf(hypotheses, references, how);
}

const std::string risk =
    "risk assessment must be made of those who are qualified and expertise in the sector - these are "
    "the scientists .";
const std::string risk_reference =
    "risk assessment has to be undertaken by those who are qualified and expert in that area "
    "- that is the scientists .";
const std::string relation = "Die Beziehung zwischen Obama und Netanjahu ist nicht gerade freundlich.";
const std::string relation_reference = "Das Verhältnis zwischen Obama und Netanyahu ist nicht gerade freundschaftlich.";

}  // namespace

TEST_CASE("a hand-computed example: one of two characters")
{
    // "aa" and "ab": 1-grams 1 of 2, 2-grams 0 of 1; P = R = (1/2 + 0) / 2.
    const chrf_counts counts = chrf_matches("aa", "ab");
    CHECK(counts.matches[0] == 1);
    CHECK(counts.hypothesis[0] == 2);
    CHECK(counts.reference[1] == 1);
    CHECK(chrf(counts) == support::approx(25));
    // "ab" against "abcd": P = 2/2, 1/1; R = 2/4, 1/3; 3- and 4-grams that only one text has do not count.
    const double recall = (2.0 / 4 + 1.0 / 3) / 2;
    CHECK(score({"ab"}, {"abcd"}) == support::approx(100 * 5 * recall / (4 + recall)));
    // Orders for which the reference is too short do not count in any sentence.
    CHECK(chrf_matches("abcd", "ab").hypothesis == std::array<std::size_t, 8>{4, 3});
    // Recall counts more than precision: with the texts swapped the score is lower.
    CHECK(score({"abcd"}, {"ab"}) == support::approx(100 * 5 * recall / (4 * recall + 1)));
}

TEST_CASE("beta 3 and all orders equal the constants of sacrebleu's tests")
{
    chrf_options how;
    how.beta = 3;
    how.every_order = true;
    const auto is = [&](const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
                        double value) {
        CAPTURE(hypotheses.front());
        CHECK(score(hypotheses, references, how) == support::approx(value, 1e-8));
    };
    is({"abcdefg"}, {"hijklmnop"}, 0);
    is({"a"}, {"b"}, 0);
    is({""}, {"reference"}, 0);
    is({"aa"}, {"ab"}, 8.3333333);
    is({"a", "b"}, {"a", "c"}, 8.3333333);
    is({"a"}, {"a"}, 16.6666667);
    is({"a b c"}, {"a b c"}, 50);
    is({"a b c"}, {"abc"}, 50);
    is({" " + risk}, {risk_reference}, 63.361730);
    // The constant in sacrebleu is 64.1302698, for the mean precision and recall; this is the mean F, which is within
    // its tolerance of 1e-4.
    is({" Die    Beziehung zwischen  Obama und Netanjahu ist nicht gerade  freundlich. "}, {relation_reference},
       64.1302215593);
    is({"Niemand hat die Absicht, eine Mauer zu errichten"}, {"Niemand hat die Absicht, eine Mauer zu errichten"}, 100);
}

TEST_CASE("beta 3 and the orders of both texts equal the constants of sacrebleu's tests")
{
    chrf_options how;
    how.beta = 3;
    CHECK(score({"a"}, {"a"}, how) == support::approx(100));
    CHECK(score({""}, {"reference"}, how) == 0.0);
    CHECK(score({"a b c"}, {"a b c"}, how) == support::approx(100));
    CHECK(score({"a b c"}, {"abc"}, how) == support::approx(100));
    CHECK(score({""}, {"c"}, how) == 0.0);
    CHECK(score({"a", "b"}, {"a", "c"}, how) == support::approx(50));
    CHECK(score({"aa"}, {"ab"}, how) == support::approx(25));
    how.whitespace = true;
    CHECK(score({relation}, {relation_reference}, how) == support::approx(67.3481606, 1e-8));
    CHECK(score({risk}, {risk_reference}, how) == support::approx(65.2414427, 1e-8));
}

TEST_CASE("Czech sentences, beta 2 and all orders equal the constants of sacrebleu's tests")
{
    chrf_options how;
    how.every_order = true;
    CHECK(score({"Co nás nejvíc trápí, protože lékaři si vybírají, kdo bude žít a kdo zemře."},
                {"Nejvíce smutní jsme z toho, že musíme rozhodovat o tom, kdo bude žít a kdo zemře."},
                how) == support::approx(39.14078509, 1e-8));
    CHECK(score({"Nebo prostě nemají vybavení, které by jim pomohlo, uvedli lékaři."},
                {"A někdy nemáme ani potřebný materiál, abychom jim pomohli, popsali lékaři."},
                how) == support::approx(31.22557079, 1e-8));
    CHECK(score({"Lapali po dechu, jejich životy skončily dřív, než skutečně začaly."},
                {"Lapali po dechu a pak jejich život skončil - dřív, než skutečně mohl začít, připomněli."},
                how) == support::approx(57.15704367, 1e-8));
}

TEST_CASE("with several references, the n-grams of the best one are used")
{
    const std::vector<std::string> references{"xyz", "aab", "abc"};
    // "ab": of "xyz" nothing; of "aab" both characters and "ab", R = (2/3 + 1/2) / 2; likewise of "abc".
    const chrf_counts counts = chrf_matches("ab", references);
    CHECK(counts.matches[0] == 2);
    CHECK(counts.matches[1] == 1);
    CHECK(chrf(counts) == support::approx(100 * 5 * (7.0 / 12) / (4 + 7.0 / 12)));
    // Recall decides: a longer reference with the same number of matches is worse.
    CHECK(chrf_matches("ab", std::vector<std::string>{"abcd", "ab"}).reference[0] == 2);
    CHECK(chrf_matches("a", std::vector<std::string>{"", "b"}).hypothesis[0] == 1);
    const std::vector<std::vector<std::string>> sets{{"ab", "xyz"}, {"abcd", "ab"}};
    const auto each = chrf_statistics(std::vector<std::string>{"ab", "ab"}, sets);
    CHECK(each[0].reference[0] == 2);
    CHECK(each[1].reference[0] == 2);
    CHECK(each[1].matches[0] == 2);
    CHECK_THROWS_WITH_AS(chrf_matches("a", std::vector<std::string>{}),
                         "chrf: a hypothesis has no reference; at least one is required", heed::error);
    CHECK_THROWS_AS(chrf_statistics(std::vector<std::string>(1), sets), heed::error);
}

TEST_CASE("n-grams consist of characters, not bytes")
{
    CHECK(chrf_matches("äöü", "äöü").hypothesis[0] == 3);
    CHECK(chrf_matches("aa", std::string_view("\0a", 2)).matches[0] == 1);  // U+0000 is a character
    CHECK(chrf_matches("ä", "ö").matches[0] == 0);                          // although their first bytes are equal
    CHECK(chrf_matches("a\u00A0\u3000b", "ab").hypothesis[0] == 2);
}

TEST_CASE("chrF++ counts words as well, with one punctuation mark split off")
{
    chrf_options how;
    how.words = 2;
    // "so)" is "so" and ")"; "\"x" is "\"" and "x"; a single punctuation mark stays.
    const chrf_counts counts = chrf_matches("so) \"x - y", "so ) \" x - y", how);
    CHECK(counts.hypothesis[6] == 6);
    CHECK(counts.matches[6] == 6);
    CHECK(counts.matches[7] == 5);
    CHECK(chrf(counts, how) == support::approx(100));
    CHECK(chrf_matches("(so)", "(so )", how).matches[6] == 1);  // "(so" and ")", but "(", "so" and ")"
    // P = R of "a b" and "a c": 1/2 and 0 of words, 1/2 and 0 of characters.
    CHECK(score({"a b"}, {"a c"}, how) == support::approx(25));
    CHECK(chrf_matches("a b", "a b").hypothesis[6] == 0);
}

TEST_CASE("invalid text and options are rejected")
{
    CHECK_THROWS_WITH_AS(score({"a", "b"}, {"a"}),
                         "chrf: 2 hypotheses but 1 reference; expected one of each per sentence", heed::error);
    CHECK_THROWS_WITH_AS(chrf_matches("ab\xff", "a"), "chrf: byte 3 of the hypothesis is not valid UTF-8", heed::error);
    CHECK_THROWS_WITH_AS(chrf_matches("a", "\xff"), "chrf: byte 1 of the reference is not valid UTF-8", heed::error);
    chrf_options how;
    how.characters = 7;
    CHECK_THROWS_AS(chrf_matches("a", "a", how), heed::error);
    how.characters = how.words = 0;
    CHECK_THROWS_AS(chrf(chrf_counts{}, how), heed::error);
    how.words = 3;
    CHECK_THROWS_AS(chrf(chrf_counts{}, how), heed::error);
    how = {};
    how.beta = 0;
    CHECK_THROWS_AS(chrf(chrf_counts{}, how), heed::error);
    CHECK(score({}, {}) == 0.0);
}
