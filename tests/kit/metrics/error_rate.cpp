// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/random.hpp>
#include <heed_kit/metrics/error_rate.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;
using heed::text::sentence;
using heed::text::split;

namespace {

std::size_t distance(const std::string& a, const std::string& b) { return edit_distance(split(a), split(b)); }

// By definition: the last words are replaced or kept, or one word is left out.
std::size_t by_definition(const sentence& a, const sentence& b)
{
    if (a.empty() || b.empty()) return a.size() + b.size();
    const sentence shorter_a(a.begin(), a.end() - 1), shorter_b(b.begin(), b.end() - 1);
    return std::min({by_definition(shorter_a, shorter_b) + (a.back() == b.back() ? 0 : 1),
                     by_definition(shorter_a, b) + 1, by_definition(a, shorter_b) + 1});
}

}  // namespace

TEST_CASE("insertions, deletions and replacements count; moved phrases do not count as one edit")
{
    CHECK(distance("k i t t e n", "s i t t i n g") == 3);
    CHECK(distance("a b c", "a b c") == 0);
    CHECK(distance("a b", "a b c") == 1);
    CHECK(distance("a b c", "a c") == 1);
    CHECK(distance("d e f", "a b c") == 3);
    CHECK(distance("c d a b", "a b c d") == 4);
    CHECK(distance("", "a b") == 2);
    CHECK(distance("a b", "") == 2);
    CHECK(distance("", "") == 0);
}

TEST_CASE("edits of random short sentences equal the definition")
{
    heed::random_source source{3};
    for (std::size_t round = 0; round < 200; ++round) {
        const std::uint64_t stream = source.next_stream();
        sentence a(heed::below(7, stream, 0)), b(heed::below(7, stream, 1));
        std::uint64_t i = 2;
        for (sentence* const each : {&a, &b})
            for (std::string& word : *each) word = std::string(1, static_cast<char>('a' + heed::below(3, stream, i++)));
        CAPTURE(heed::text::join(a));
        CAPTURE(heed::text::join(b));
        CHECK(edit_distance(a, b) == by_definition(a, b));
    }
}

namespace {

// The full table, row by row.
std::size_t by_table(const sentence& a, const sentence& b)
{
    std::vector<std::size_t> above(b.size() + 1), here(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        here[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j)
            here[j] = std::min({above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), above[j] + 1, here[j - 1] + 1});
        above.swap(here);
    }
    return above.back();
}

}  // namespace

TEST_CASE("edits equal the full table for sentences of several blocks and bands")
{
    heed::random_source source{4};
    for (std::size_t round = 0; round < 120; ++round) {
        const std::uint64_t stream = source.next_stream();
        std::uint64_t next = 0;
        const auto below = [&](std::size_t bound) {
            return static_cast<std::size_t>(heed::below(bound, stream, next++));
        };
        const std::size_t words = std::vector<std::size_t>{1, 2, 30, 1000}[below(4)];
        const auto word = [&] { return std::to_string(below(words)); };
        sentence a(1 + below(400)), b;
        for (std::string& each : a) each = word();
        if (below(3) == 0) {
            b.resize(1 + below(400));
            for (std::string& each : b) each = word();
        } else {  // similar, possibly with a moved part
            const std::size_t wrong = 1 + below(20);
            for (const std::string& each : a) {
                if (below(100) < wrong) b.push_back(word());
                if (below(100) >= wrong) b.push_back(each);
            }
            if (below(2) == 0)
                std::rotate(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(below(b.size() + 1)), b.end());
        }
        CAPTURE(round);
        const std::size_t expected = by_table(a, b);
        CHECK(edit_distance(a, b) == expected);
        CHECK(edit_distance(b, a) == expected);
    }
    // Exactly one, two and three blocks, and one word fewer or more.
    for (const std::size_t length : {63u, 64u, 65u, 127u, 128u, 129u, 192u}) {
        CHECK(edit_distance(sentence(length, "a"), sentence(length, "b")) == length);
        CHECK(edit_distance(sentence(length, "a"), sentence(200, "b")) == 200);
        CHECK(edit_distance(sentence(length, "a"), sentence(3 * length, "a")) == 2 * length);
    }
}

TEST_CASE("long sentences that differ in few words are compared along the diagonal")
{
    // All words differ, so every missing or replaced word is an edit: 5 + 7 edits.
    constexpr std::size_t length = 70000;  // error_statistics() counts its steps
    sentence a, b;
    for (std::size_t i = 0; i < length; ++i) {
        a.push_back(std::to_string(i));
        if (i % 10000 == 777 && b.size() + 5 > i) continue;  // five of six
        b.push_back(i % 9000 == 9 && i > 9000 ? "x" : a.back());
    }
    REQUIRE(a.size() - b.size() == 5);
    std::size_t done = 0, all = 0, calls = 0;
    CHECK(edit_distance(a, b, [&](std::size_t some, std::size_t of) {
              CHECK(some >= done);
              CHECK(some <= of);
              done = some;
              all = of;
              ++calls;
          }) == 12);
    CHECK(done == all);
    CHECK(all <= 4 * length);  // a few blocks of each column
    CHECK(calls > 10);
    std::size_t lines = 0, steps = 0;
    const std::vector<sentence> said{a, split("a b")};
    const std::vector<std::vector<sentence>> references{{b, split("a c")}};
    const auto errors = error_statistics(
        said, references, [&](std::size_t some, std::size_t) { lines = some; },
        [&](std::size_t some, std::size_t) { steps = some; });
    CHECK(errors[0].edits == 12);
    CHECK(errors[0].wrong_lines == 1);
    CHECK(errors[1].edits == 1);
    CHECK(lines == 2);
    CHECK(steps == all);
}

TEST_CASE("sentences that would take too long are rejected")
{
    const sentence a(1000, "a"), b(1200, "b");
    CHECK(edit_distance(a, b, {}, 100000) == 1200);
    CHECK_THROWS_WITH_AS(edit_distance(a, b, {}, 20000),
                         "error rate: sentences of 1000 and 1200 words that differ in more than 200 take too long to "
                         "compare; split them into shorter ones, one per line",
                         heed::error);
}

TEST_CASE("edits of a corpus are summed before dividing, and sentence errors are counted per line")
{
    const std::vector<sentence> hypotheses{split("a b c d"), split("a b"), split("")};
    const std::vector<std::vector<sentence>> references{{split("a x c d e"), split("a b"), split("a")}};
    error_counts sum;
    for (const error_counts& each : error_statistics(hypotheses, references)) sum += each;
    CHECK(sum.edits == 3);
    CHECK(sum.reference_length == 8);
    CHECK(error_rate(sum) == 37.5);
    CHECK(sum.wrong_lines == 2);
    CHECK(sum.accuracy() == support::approx(1.0 / 3));
    CHECK(error_rate(count_errors(split("a b c"), split("a"))) == 200.0);
    CHECK(error_rate(count_errors(split("a"), split(""))) == 100.0);
    CHECK(error_rate(error_counts{}) == 0.0);
    CHECK(error_counts{}.accuracy() == 1.0);
}

TEST_CASE("with several references, the nearest is used, the longest of equals; empty ones are ignored")
{
    const sentence said = split("T AH M EY T OW");
    const std::vector<sentence> both{split("T AH M AA T OW"), split("T AH M EY T OW")};
    CHECK(count_errors(said, both).edits == 0);
    CHECK(count_errors(said, both).wrong_lines == 0);
    CHECK(count_errors(split("a"), std::vector<sentence>{split("b"), split("a b"), split("a c")}).reference_length ==
          2);
    const error_counts one = count_errors(split("a"), std::vector<sentence>{{}, split("b c")});
    CHECK(one.edits == 2);
    CHECK(one.reference_length == 2);
    CHECK(count_errors({}, std::vector<sentence>{{}, split("b c")}).edits == 2);
    CHECK(count_errors(split("a"), std::vector<sentence>{{}, {}}).edits == 1);
    CHECK_THROWS_WITH_AS(count_errors(said, std::vector<sentence>{}),
                         "error rate: a hypothesis has no reference; at least one is required", heed::error);
    CHECK_THROWS_WITH_AS(error_statistics(std::vector<sentence>(2), std::vector<std::vector<sentence>>{both, {{}}}),
                         "error rate: 2 hypotheses but 1 reference; expected one of each per sentence", heed::error);
}
