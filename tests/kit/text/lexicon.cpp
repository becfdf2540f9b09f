// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/lexicon.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <support/approx.hpp>

using namespace heed;
using ids = std::vector<std::uint32_t>;

TEST_CASE("IBM Model 1 equals a hand-computed round from a uniform start, then converges")
{
    // das Haus – the house, das Buch – the book, ein Buch – a book (Koehn 2010, figure 4.4)
    const std::uint32_t das = 4, haus = 5, buch = 6, ein = 7, the = 4, house = 5, book = 6, a = 7;
    const std::vector<ids> source{{das, haus}, {das, buch}, {ein, buch}}, target{{the, house}, {the, book}, {a, book}};
    const auto once = text::lexicon::learn(source, target, {.rounds = 1, .unlinked_share = 0});
    CHECK(once.probability(das, the) == support::approx(0.5));
    // t starts at 1/3 for `das` and `buch`, 1/2 for `haus` and `ein`: of `house`, das gets (1/3)/(1/3 + 1/2) = 2/5; of
    // `the`, 2/5 with haus and 1/2 with buch; of `book`, 1/2.
    const double total = 0.4 + 0.4 + 0.5 + 0.5;
    CHECK(once.probability(das, house) == support::approx(0.4 / total));
    CHECK(once.probability(das, the) == support::approx(0.9 / total));
    CHECK(once.probability(das, a) == 0);
    const auto often = text::lexicon::learn(source, target, {.rounds = 50, .unlinked_share = 0});
    CHECK(often.of(das).front().target == the);
    CHECK(often.of(haus).front().target == house);
    CHECK(often.of(buch).front().target == book);
    CHECK(often.of(ein).front().target == a);
    CHECK(often.of(das).front().probability > 0.99);
    // `the` is das, `house` the first haus, `a` is ein; 99 is no word's translation.
    CHECK(often.align(ids{ein, haus, das, haus}, ids{the, 99, house, a}) ==
          std::vector<std::pair<int, int>>{{2, 0}, {1, 2}, {0, 3}});
    CHECK(often.align(ids{}, ids{the}).empty());
    double sum = 0;
    for (const auto& each : often.of(haus)) sum += each.probability;
    CHECK(sum == doctest::Approx(1).epsilon(0.01));  // the least probable words are dropped
    CHECK(often.of(99).empty());
    // With the empty word, a word that occurs in all sentences translates no other word.
    std::vector<ids> with_dot = target;
    for (ids& each : with_dot) each.push_back(9);
    const auto unlinked = text::lexicon::learn(source, with_dot, {.rounds = 30});
    CHECK(unlinked.of(haus).front().target == house);
    CHECK_THROWS_WITH_AS(text::lexicon::learn(source, std::vector<ids>{}),
                         "lexicon: 3 source sentences and 0 of the other side; the numbers must be equal", error);
    CHECK(text::lexicon::learn(std::vector<ids>{{}}, std::vector<ids>{{}}).size() == 0);
}

TEST_CASE("a dictionary of links has relative frequencies")
{
    const std::vector<ids> source{{4, 5}, {4}}, target{{7, 8}, {9}};
    using links = std::vector<std::vector<std::pair<int, int>>>;
    const auto learned = text::lexicon::of_links(source, target, links{{{0, 0}, {0, 1}, {1, 1}}, {{0, 0}}});
    CHECK(learned.probability(4, 7) == support::approx(1.0 / 3));
    CHECK(learned.probability(4, 9) == support::approx(1.0 / 3));
    CHECK(learned.probability(5, 8) == 1);
    CHECK(learned.of(4).front().target == 7);  // equal words by id
    CHECK_THROWS_WITH_AS(text::lexicon::of_links(source, target, links{{{2, 0}}, {}}),
                         "lexicon: link 2-0 of pair 0, whose sentences have 2 and 2 words; positions count from 0",
                         error);
}
