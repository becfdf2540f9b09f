// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/random.hpp>
#include <heed/metrics/error_rate.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

using namespace heed::metrics;
using heed::text::sentence;
using heed::text::split;

namespace {

std::size_t distance(const std::string& a, const std::string& b) { return edit_distance(split(a), split(b)); }

// The definition: the last words are replaced or kept, or one of them is left out.
std::size_t by_definition(const sentence& a, const sentence& b)
{
    if (a.empty() || b.empty()) return a.size() + b.size();
    const sentence shorter_a(a.begin(), a.end() - 1), shorter_b(b.begin(), b.end() - 1);
    return std::min({by_definition(shorter_a, shorter_b) + (a.back() == b.back() ? 0 : 1),
                     by_definition(shorter_a, b) + 1, by_definition(a, shorter_b) + 1});
}

}  // namespace

TEST_CASE("insert, delete, replace; phrases do not move")
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

TEST_CASE("as the definition says, on random sentences of few words")
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

TEST_CASE("rates of a corpus: edits are summed before dividing, and a line is right or wrong")
{
    const std::vector<sentence> hypotheses{split("a b c d"), split("a b"), split("")};
    const std::vector<std::vector<sentence>> references{{split("a x c d e"), split("a b"), split("a")}};
    error_counts sum;
    for (const error_counts& each : error_statistics(hypotheses, references)) sum += each;
    CHECK(sum.edits == 3);
    CHECK(sum.reference_length == 8);
    CHECK(error_rate(sum) == 37.5);
    CHECK(sum.wrong_lines == 2);
    CHECK(sum.accuracy() == doctest::Approx(1.0 / 3));
    CHECK(error_rate(count_errors(split("a b c"), split("a"))) == 200.0);
    CHECK(error_rate(count_errors(split("a"), split(""))) == 100.0);
    CHECK(error_rate(error_counts{}) == 0.0);
    CHECK(error_counts{}.accuracy() == 1.0);
}

TEST_CASE("several references: the nearest one, of equals the longest; empty ones are left out")
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
                         "error rate: a hypothesis without a reference; it needs at least one", heed::error);
    CHECK_THROWS_WITH_AS(error_statistics(std::vector<sentence>(2), std::vector<std::vector<sentence>>{both, {{}}}),
                         "error rate: 2 hypotheses but 1 reference; each sentence needs one of both", heed::error);
}
