// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/metrics/words.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;
using heed::text::sentence;
using heed::text::split;

TEST_CASE("distinct words and pairs are counted")
{
    const std::vector<sentence> text{split("a b a b"), split("a <unk> c <unk>"), {}};
    const word_statistics all = count_words(text);
    CHECK(all.sentences == 3);
    CHECK(all.words == 8);
    CHECK(all.distinct == 4);  // a b <unk> c
    CHECK(all.once == 1);      // c
    CHECK(all.unknown == 2);
    CHECK(all.pairs == 6);           // ab ba ab, a<unk> <unk>c c<unk>
    CHECK(all.distinct_pairs == 5);  // no pair spans the end of a line
    CHECK(all.distinct_1() == support::approx(0.5));
    CHECK(all.distinct_2() == support::approx(5.0 / 6));
    CHECK(all.mean_length() == support::approx(8.0 / 3));
}

TEST_CASE("the shares of an empty text are 0")
{
    const word_statistics none = count_words({});
    CHECK(none.distinct_1() == 0.0);
    CHECK(none.distinct_2() == 0.0);
    CHECK(none.mean_length() == 0.0);
    CHECK(compare_words({}, {}).known() == 0.0);
}

TEST_CASE("words of two texts are compared")
{
    const std::vector<sentence> text{split("a b b"), split("c")}, other{split("b c d e"), split("f b")};
    const word_overlap both = compare_words(text, other);
    CHECK(both.distinct == 3);
    CHECK(both.other_distinct == 5);
    CHECK(both.shared == 2);
    CHECK(both.known() == support::approx(2.0 / 3));
    CHECK(both.covered() == support::approx(0.4));
    CHECK(compare_words(text, text).covered() == 1.0);
    CHECK(compare_words(text, {}).shared == 0);
}
