// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/casing.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace heed::text;

namespace {

std::vector<bool> starts_of(const sentence& words)
{
    sentence_starts starts;
    std::vector<bool> all;
    for (const std::string& word : words) all.push_back(starts(word));
    return all;
}

}  // namespace

TEST_CASE("words at the start of a sentence are recognized")
{
    CHECK(starts_of({"A", "man", "."}) == std::vector<bool>{true, false, false});
    CHECK(starts_of({"“", "Yes", "!", "”", "He", "left"}) == std::vector<bool>{false, true, false, false, true, false});
    CHECK(starts_of({"a", ",", "b", "?", "c"}) == std::vector<bool>{true, false, false, false, true});
}

TEST_CASE("the usual form is the most frequent one inside sentences")
{
    const std::vector<sentence> lines{{"Der", "Mann", "und", "der", "Hund"},
                                      {"Tom", "mag", "Der", "USA"},
                                      {"Der", "Mann", "der", "mann"},
                                      {"ALLES", "IN", "MANN"},
                                      {"Essen", "."},
                                      {"das", "essen"}};
    const usual_casing usual = usual_casing::learn(lines);
    CHECK(usual.capitals());
    CHECK(usual.of("DER") == "der");
    CHECK(usual.of("mann") == "Mann");
    CHECK(usual.of("usa") == "USA");
    CHECK(usual.of("Essen") == "essen");
    CHECK_FALSE(usual.of("tom"));    // only at the start of a sentence
    CHECK_FALSE(usual.of("alles"));  // only in an all-caps line
    CHECK(usual_casing::learn(std::vector<sentence>{{"a", "b"}, {"b", "a"}}).capitals() == false);
    CHECK(usual_casing::learn({}) == usual_casing());

    sentence forms;
    for (const auto& [lower, form] : usual.forms()) forms.push_back(form);
    CHECK(usual_casing(true, forms) == usual);
    forms.push_back("MANN");
    CHECK_THROWS_WITH_AS(usual_casing(true, forms), "casing: \"MANN\" is listed twice", heed::error);
}

TEST_CASE("letters are counted")
{
    const letter_counts all = count_letters(sentence{"DER", "I", "Mann", "ß", "1!"});
    CHECK(all.upper == 5);
    CHECK(all.lower == 4);
    CHECK(all.words_in_capitals == 1);
}
