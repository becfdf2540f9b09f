// SPDX-License-Identifier: BSD-3-Clause
#include "../../examples/support/number_words.hpp"

#include <doctest/doctest.h>
#include <support/exhaustive.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

std::string spaced(const std::vector<std::string>& words)
{
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
    return line;
}

std::string english(std::uint32_t number) { return spaced(numbers::say(number).english); }
std::string german(std::uint32_t number) { return spaced(numbers::say(number).german); }

using links = std::vector<std::pair<int, int>>;

std::size_t digits(std::uint32_t number) { return std::to_string(number).size(); }

}  // namespace

TEST_CASE("numbers in English")
{
    CHECK(english(0) == "zero");
    CHECK(english(1) == "one");
    CHECK(english(13) == "thirteen");
    CHECK(english(20) == "twenty");
    CHECK(english(21) == "twenty one");
    CHECK(english(100) == "one hundred");
    CHECK(english(105) == "one hundred five");
    CHECK(english(1000) == "one thousand");
    CHECK(english(3724) == "three thousand seven hundred twenty four");
    CHECK(english(70016) == "seventy thousand sixteen");
    CHECK(english(999999) == "nine hundred ninety nine thousand nine hundred ninety nine");
}

TEST_CASE("numbers in German")
{
    CHECK(german(0) == "null");
    CHECK(german(1) == "eins");
    CHECK(german(12) == "zwölf");
    CHECK(german(13) == "dreizehn");
    CHECK(german(16) == "sechzehn");
    CHECK(german(17) == "siebzehn");
    CHECK(german(30) == "dreißig");
    CHECK(german(21) == "ein und zwanzig");
    CHECK(german(66) == "sechs und sechzig");
    CHECK(german(77) == "sieben und siebzig");
    CHECK(german(100) == "ein hundert");
    CHECK(german(101) == "ein hundert eins");
    CHECK(german(111) == "ein hundert elf");
    CHECK(german(1000) == "ein tausend");
    CHECK(german(1001) == "ein tausend eins");
    CHECK(german(3724) == "drei tausend sieben hundert vier und zwanzig");
    CHECK(german(21021) == "ein und zwanzig tausend ein und zwanzig");
    CHECK(german(101101) == "ein hundert ein tausend ein hundert eins");
}

TEST_CASE("the alignment crosses four and twenty and leaves und unlinked")
{
    // three thousand seven hundred twenty four - drei tausend sieben hundert vier und zwanzig
    CHECK(numbers::say(3724).links == links{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 6}, {5, 4}});
    CHECK(numbers::say(0).links == links{{0, 0}});
    CHECK(numbers::say(21000).links == links{{0, 2}, {1, 0}, {2, 3}});
}

TEST_CASE("all numbers differ, and every word except for und has one link, to its translation")
{
    std::set<std::pair<std::string, std::string>> dictionary;
    std::set<std::string> seen;
    std::size_t longest = 0;
    const std::uint32_t dense = support::exhaustive() ? 30'000 : 3'000;
    for (std::uint32_t number = 0; number < numbers::limit; number += number < dense ? 1 : 997) {
        const numbers::pair pair = numbers::say(number);
        REQUIRE(pair.number == number);
        REQUIRE(seen.insert(spaced(pair.german)).second);
        // One assertion per number: they are slow.
        bool right = pair.links.size() == pair.english.size();
        std::vector<int> times(pair.german.size(), 0);
        for (std::size_t i = 0; right && i < pair.links.size(); ++i) {
            const auto [source, target] = pair.links[i];
            right = source == static_cast<int>(i) && target >= 0 && target < static_cast<int>(pair.german.size());
            if (!right) break;
            ++times[static_cast<std::size_t>(target)];
            dictionary.emplace(pair.english[i], pair.german[static_cast<std::size_t>(target)]);
        }
        for (std::size_t j = 0; j < times.size(); ++j) right = right && times[j] == (pair.german[j] == "und" ? 0 : 1);
        REQUIRE_MESSAGE(right, number);
        longest = std::max(longest, pair.german.size());
    }
    CHECK(longest == 11);
    // 30 English words; "one" has two translations, "ein" and "eins"; every other word has one.
    CHECK(dictionary.size() == 31);
    CHECK(dictionary.contains({"four", "vier"}));
    CHECK(dictionary.contains({"one", "eins"}));
    CHECK(dictionary.contains({"thousand", "tausend"}));
}

TEST_CASE("a number out of range is rejected") { CHECK_THROWS_AS(numbers::say(1'000'000), std::out_of_range); }

TEST_CASE("a sample consists of three disjoint sets, each with all lengths")
{
    const numbers::split sets = numbers::sample(1, 5000, 300, 300);
    REQUIRE(sets.train.size() == 5000);
    REQUIRE(sets.valid.size() == 300);
    REQUIRE(sets.test.size() == 300);
    std::set<std::uint32_t> all;
    for (const auto* set : {&sets.train, &sets.valid, &sets.test}) {
        std::vector<std::size_t> of_length(7, 0);
        for (const numbers::pair& each : *set) {
            all.insert(each.number);
            ++of_length[digits(each.number)];
        }
        // There are enough numbers of four to six digits: about a sixth each.
        for (const std::size_t length : {4u, 5u, 6u}) CHECK(of_length[length] > set->size() / 8);
        CHECK(of_length[3] > set->size() / 10);
        CHECK(of_length[2] > 5);
        CHECK(of_length[1] > 0);
    }
    CHECK(all.size() == 5600);
    CHECK(sets.train.front().number == 0);
}

TEST_CASE("a sample depends only on its seed")
{
    const auto first_of = [](std::uint64_t seed) {
        std::vector<std::uint32_t> result;
        for (const numbers::pair& each : numbers::sample(seed, 6, 2, 2).train) result.push_back(each.number);
        return result;
    };
    CHECK(first_of(1) == first_of(1));
    CHECK(first_of(1) != first_of(2));
    // Equal on every platform: the values come from another implementation, in Python.
    CHECK(first_of(7) == std::vector<std::uint32_t>{0, 904425, 26, 4, 7, 619797});
}

TEST_CASE("when short numbers run out, none is drawn twice and longer numbers take their place")
{
    const numbers::split sets = numbers::sample(3, 30'000, 4'000, 4'001);
    REQUIRE(sets.train.size() == 30'000);
    REQUIRE(sets.valid.size() == 4'000);
    REQUIRE(sets.test.size() == 4'001);
    std::set<std::uint32_t> all;
    std::size_t shorter = 0;
    for (const auto* set : {&sets.train, &sets.valid, &sets.test}) {
        std::vector<std::size_t> of_length(7, 0);
        for (const numbers::pair& each : *set) {
            all.insert(each.number);
            ++of_length[digits(each.number)];
        }
        for (const std::size_t length : {1u, 2u, 3u, 4u}) shorter += of_length[length];
        if (set == &sets.train) continue;
        // An eighth of each length.
        CHECK(of_length == std::vector<std::size_t>{0, 1, 11, 112, 1125, of_length[5], of_length[6]});
    }
    CHECK(all.size() == 38'001);
    CHECK(shorter == 10'000);
}

TEST_CASE("the largest samples and empty samples")
{
    if (support::exhaustive()) {  // spells a million numbers
        const numbers::split everything = numbers::sample(3, 755'001, 120'000, 124'999);
        std::vector<bool> there(numbers::limit, false);
        for (const auto* set : {&everything.train, &everything.valid, &everything.test})
            for (const numbers::pair& each : *set) there[each.number] = true;
        CHECK(std::count(there.begin(), there.end(), true) == 1'000'000);
    }

    const numbers::split nothing = numbers::sample(3, 0, 0, 0);
    CHECK(nothing.train.empty());
    CHECK(nothing.test.empty());
    CHECK_THROWS_AS(numbers::sample(3, 0, 0, 125'000), std::invalid_argument);
    CHECK_THROWS_AS(numbers::sample(3, 999'900, 100, 1), std::invalid_argument);
}
