// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/metrics/alignment_error.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;

namespace {

std::string problem(const std::string& line)
{
    try {
        parse_gold(line, "gold:3");
    } catch (const heed::error& caught) {
        return caught.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("a hand-computed example: three links proposed, one sure, one possible, one wrong")
{
    // A = {00, 11, 22}, S = {00, 33}, P = S + {11}: |A∩S| = 1, |A∩P| = 2, |A| = 3, |S| = 2.
    alignment_score score;
    score.add({{0, 0}, {1, 1}, {2, 2}}, {{{0, 0}, {3, 3}}, {{1, 1}}});
    CHECK(score.proposed == 3);
    CHECK(score.sure == 2);
    CHECK(score.proposed_sure == 1);
    CHECK(score.proposed_possible == 2);
    CHECK(score.precision() == support::approx(2.0 / 3));
    CHECK(score.recall() == support::approx(0.5));
    CHECK(score.f1() == support::approx(4.0 / 7));
    CHECK(score.aer() == support::approx(1 - 3.0 / 5));
}

TEST_CASE("over a corpus, counts are added before dividing")
{
    // Together |A| = 4, |S| = 4, |A∩S| = 2, |A∩P| = 3; the mean of the two sentences' AER (0.4, 1/3) would differ.
    const std::vector<links> proposals{{{0, 0}, {1, 1}, {2, 2}}, {{0, 1}}};
    const std::vector<gold_links> gold{{{{0, 0}, {3, 3}}, {{1, 1}}}, {{{0, 1}, {1, 0}}, {}}};
    const alignment_score score = alignment_error(proposals, gold);
    CHECK(score.aer() == support::approx(1 - 5.0 / 8));
    CHECK(score.precision() == support::approx(0.75));
    CHECK(score.recall() == support::approx(0.5));
}

TEST_CASE("links are sets")
{
    alignment_score score;
    score.add({{1, 1}, {0, 0}, {1, 1}}, {{{0, 0}, {0, 0}}, {{1, 1}, {0, 0}, {1, 1}}});
    CHECK(score.proposed == 2);
    CHECK(score.sure == 1);
    CHECK(score.proposed_sure == 1);
    CHECK(score.proposed_possible == 2);
    CHECK(score.aer() == 0.0);
}

TEST_CASE("i and j are not interchangeable")
{
    alignment_score score;
    score.add({{1, 0}}, {{{0, 1}}, {}});
    CHECK(score.proposed_possible == 0);
    CHECK(score.aer() == 1.0);
}

TEST_CASE("empty proposals and empty gold alignments have defined scores")
{
    alignment_score neither;
    neither.add({}, {});
    CHECK(neither.aer() == 0.0);
    CHECK(neither.f1() == 1.0);
    alignment_score silent;
    silent.add({}, {{{0, 0}}, {}});
    CHECK(silent.aer() == 1.0);
    CHECK(silent.recall() == 0.0);
    CHECK(silent.f1() == 0.0);
    alignment_score wrong;
    wrong.add({{0, 0}}, {});
    CHECK(wrong.aer() == 1.0);
    CHECK(wrong.precision() == 0.0);
}

TEST_CASE("the numbers of proposals and gold alignments must be equal")
{
    CHECK_THROWS_WITH_AS(
        alignment_error(std::vector<links>(2), std::vector<gold_links>(3)),
        "alignment_error: 2 proposed alignments but 3 gold alignments; expected one of each per sentence pair",
        heed::error);
}

TEST_CASE("Pharaoh's notation is read and written")
{
    const gold_links gold = parse_gold("0-0 12-3 4p5\t6p6");
    CHECK(gold.sure == links{{0, 0}, {12, 3}});
    CHECK(gold.possible == links{{4, 5}, {6, 6}});
    CHECK(pharaoh(gold.sure, gold.possible) == "0-0 12-3 4p5 6p6");
    CHECK(pharaoh({}) == "");
    CHECK(parse_gold("").sure.empty());
    CHECK(parse_links("0-0 2-1") == links{{0, 0}, {2, 1}});
    CHECK_THROWS_WITH_AS(parse_links("0-0 2p1", "out:7"), "out:7: 2p1 is a possible link; only i-j is allowed here",
                         heed::error);
}

TEST_CASE("text that is not a link is rejected with its location")
{
    CHECK(problem("0-0 1:1") ==
          "gold:3: \"1:1\" is not a link; expected i-j (sure) or ipj (possible), positions from 0");
    for (const char* bad : {"-", "1", "1-", "-1", "1-x", "x-1", "1--1", "-1-1", "1-1-1", "1p", "1q1", "1-1x", "p1",
                            "99999999999-1", "1-99999999999", "+1-1", "1-+1"}) {
        CAPTURE(bad);
        CHECK(problem(bad).starts_with("gold:3: "));
    }
}

TEST_CASE("the strongest links of a matrix are found")
{
    const std::vector<float> weights{0.1f, 0.7f, 0.2f,  //
                                     0.4f, 0.3f, 0.3f};
    CHECK(strongest_links(weights, 3) == links{{1, 0}, {0, 1}});
    CHECK(strongest_links(weights, 3, 0.5f) == links{{1, 0}});
    CHECK(strongest_links({}, 3).empty());
    CHECK(strongest_links({}, 0).empty());
    CHECK_THROWS_AS(strongest_links(weights, 4), heed::shape_error);
    CHECK_THROWS_AS(strongest_links(weights, 0), heed::shape_error);
}
