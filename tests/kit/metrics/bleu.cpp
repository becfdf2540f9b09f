// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/metrics/bleu.hpp>
#include <heed_kit/metrics/tokenize_13a.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <support/approx.hpp>

using heed::metrics::bleu;
using heed::metrics::bleu_counter;
using heed::metrics::bleu_counts;
using heed::metrics::bleu_score;
using heed::metrics::bleu_statistics;
using heed::metrics::smoothing;
using heed::text::sentence;
using heed::text::split;

namespace {

bleu_counts count(const std::string& hypothesis, const std::string& reference)
{
    bleu_counter counter;
    counter.add(split(hypothesis), split(reference));
    return counter.counts();
}

using four = std::array<std::size_t, 4>;

}  // namespace

TEST_CASE("n-grams are counted and clipped")
{
    // sacrebleu's test vector. Matches: "am" once of twice, "I", "a", "sequence"; "I am", "am a"; "I am a".
    const bleu_counts sacrebleu = count("am I am a character sequence", "I am a symbol string sequence a a");
    CHECK(sacrebleu.matches == four{4, 2, 1, 0});
    CHECK(sacrebleu.totals == four{6, 5, 4, 3});

    // Papineni et al. 2002, section 2.1: "the" occurs twice in the reference, so two of seven count.
    const bleu_counts the = count("the the the the the the the", "the cat is on the mat");
    CHECK(the.matches == four{2, 0, 0, 0});
    CHECK(the.totals == four{7, 6, 5, 4});

    // "a b" and "b a" twice each in the reference; "a b a" twice, "b a b" once; "a b a b" and "b a b a" once each.
    const bleu_counts repeated = count("a b a b a b", "a b a b a");
    CHECK(repeated.matches == four{5, 4, 3, 2});
    CHECK(repeated.totals == four{6, 5, 4, 3});

    CHECK(count("a b", "a b").totals == four{2, 1, 0, 0});  // shorter than four words
    CHECK(count("", "a").totals == four{0, 0, 0, 0});
}

TEST_CASE("counts are clipped within each sentence, not over the corpus")
{
    bleu_counter counter;
    counter.add(sentence{"x", "x"}, sentence{"y"});
    counter.add(sentence{"y"}, sentence{"x", "x"});
    CHECK(counter.counts().matches == four{0, 0, 0, 0});
    CHECK(counter.counts().hypothesis_length == 3);
    CHECK(counter.counts().reference_length == 3);
}

TEST_CASE("the score follows from given counts")
{
    // From sacrebleu: compute_bleu([9,7,5,3], [10,8,6,4], 11, 11) = 83.75922397
    const bleu_score known = bleu(bleu_counts{{9, 7, 5, 3}, {10, 8, 6, 4}, 11, 11});
    CHECK(known.score == doctest::Approx(83.75922397).epsilon(1e-10));
    CHECK(known.brevity_penalty == 1.0);
    CHECK(known.text() == "BLEU = 83.76, 90.0/87.5/83.3/75.0 (BP=1.000, ratio=1.000, hyp_len=11, ref_len=11)");
}

TEST_CASE("a short hypothesis loses by the brevity penalty, a long one by its precision")
{
    // All n-grams match; r = 5, h = 4: BLEU = 100 · exp(1 - 5/4).
    const bleu_score brief = bleu(count("a b c d", "a b c d e"));
    CHECK(brief.brevity_penalty == support::approx(std::exp(-0.25)));
    CHECK(brief.score == support::approx(100 * std::exp(-0.25)));
    CHECK(brief.text() == "BLEU = 77.88, 100.0/100.0/100.0/100.0 (BP=0.779, ratio=0.800, hyp_len=4, ref_len=5)");

    // Precisions 5/6, 4/5, 3/4, 2/3, product 1/3: BLEU = 100 · 3^(-1/4), and no penalty.
    const bleu_score wordy = bleu(count("a b c d e f", "a b c d e"));
    CHECK(wordy.brevity_penalty == 1.0);
    CHECK(wordy.score == support::approx(100 * std::pow(3.0, -0.25)));

    CHECK(bleu(count("a b c d", "a b c d")).score == support::approx(100));
}

TEST_CASE("over a corpus, counts are added before dividing")
{
    // 1-grams (5+2)/(5+4), 2-grams (4+1)/(4+3), 3-grams 3/5, 4-grams 2/3; equal lengths, r = 9, h = 9.
    const std::vector<sentence> hypotheses{split("the house is small now"), split("we see a b")};
    const std::vector<sentence> references{split("the house is small now"), split("we see x y")};
    const bleu_score both = bleu(hypotheses, references);
    CHECK(both.score == support::approx(100 * std::pow(7.0 / 9 * 5 / 7 * 3 / 5 * 2 / 3, 0.25)));
    CHECK(both.precisions[0] == support::approx(700.0 / 9));
    CHECK(both.precisions[3] == support::approx(200.0 / 3));
    CHECK(both.hypothesis_length == 9);
    CHECK(both.reference_length == 9);
}

TEST_CASE("an order without a match makes the score 0, but the other precisions are reported")
{
    const bleu_score none = bleu(count("am I am a character sequence", "I am a symbol string sequence a a"));
    CHECK(none.score == 0.0);
    CHECK(none.text() == "BLEU = 0.00, 66.7/40.0/25.0/0.0 (BP=0.717, ratio=0.750, hyp_len=6, ref_len=8)");
    CHECK(bleu(count("a b c", "a b c")).score == 0.0);  // no 4-gram exists, as in multi-bleu.perl
}

TEST_CASE("empty input scores 0 without a division by 0")
{
    CHECK(bleu(count("", "a b c d")).score == 0.0);
    CHECK(bleu(count("a b c d", "")).score == 0.0);
    CHECK(bleu(std::vector<sentence>{}, std::vector<sentence>{}).text() ==
          "BLEU = 0.00, 0.0/0.0/0.0/0.0 (BP=0.000, ratio=0.000, hyp_len=0, ref_len=0)");
}

TEST_CASE("the numbers of hypotheses and references must be equal")
{
    const std::vector<sentence> two(2), three(3);
    CHECK_THROWS_WITH_AS(bleu(two, three), "bleu: 2 hypotheses but 3 references; expected one of each per sentence",
                         heed::error);
}

TEST_CASE("with several references, the largest count and the closest length are used")
{
    // "the" twice in the first, once in the second: two of seven, not three. "cat" is in the second only.
    const std::vector<sentence> references{split("the cat is on the mat"), split("there is a cat on the mat")};
    bleu_counter counter;
    const bleu_counts the = counter.add(split("the the the the the the the"), references);
    CHECK(the.matches == four{2, 0, 0, 0});
    CHECK(the.reference_length == 7);
    // Lengths 6 and 7: five is closer to six. Lengths 2 and 4: three is equally close to both, and the shorter one is
    // used.
    CHECK(counter.add(split("a b c d e"), references).reference_length == 6);
    const std::vector<sentence> short_and_long{split("a b c d"), split("a b")};
    CHECK(counter.add(split("a b c"), short_and_long).reference_length == 2);
    CHECK(counter.counts().hypothesis_length == 15);
    CHECK_THROWS_WITH_AS(counter.add(split("a"), std::span<const sentence>{}),
                         "bleu: a hypothesis has no reference; at least one is required", heed::error);
    // No n-gram of the previous reference may be left over: "q" and "cat" are both the second word of their pair.
    counter.add(split("x"), split("p q"));
    CHECK(counter.add(split("cat"), split("dog")).matches == four{0, 0, 0, 0});
}

namespace {

// The example of sacrebleu's README and tests.
const std::array<const char*, 3> outputs{"The dog bit the man.", "It wasn't surprising.",
                                         "The man had just bitten him."};
const std::array<std::array<const char*, 3>, 2> translations{
    {{"The dog bit the man.", "It was not unexpected.", "The man bit him first."},
     {"The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."}}};

double sacrebleu_example(sentence (*tokenize)(std::string_view), smoothing smooth)
{
    std::vector<sentence> hypotheses;
    for (const char* const line : outputs) hypotheses.push_back(tokenize(line));
    std::vector<std::vector<sentence>> references(2);
    for (std::size_t set = 0; set < 2; ++set)
        for (const char* const line : translations[set]) references[set].push_back(tokenize(line));
    bleu_counts sum;
    for (const bleu_counts& each : bleu_statistics(hypotheses, references)) sum += each;
    return bleu(sum, smooth).score;
}

}  // namespace

TEST_CASE("scores equal the constants of sacrebleu's tests")
{
    CHECK(sacrebleu_example(heed::metrics::tokenize_13a, smoothing::exponential) ==
          doctest::Approx(48.530827).epsilon(1e-8));
    CHECK(sacrebleu_example(heed::metrics::tokenize_13a, smoothing::none) == doctest::Approx(48.530827).epsilon(1e-8));
    CHECK(sacrebleu_example(split, smoothing::exponential) == doctest::Approx(49.1919566).epsilon(1e-8));
}

TEST_CASE("exponential smoothing: the k-th order without a match counts as 1 / 2^k matches")
{
    // p = 4/6, 2/5, 1/4 and 1/2 of 1/3; BP = exp(1 - 8/6).
    const bleu_counts one = count("am I am a character sequence", "I am a symbol string sequence a a");
    const bleu_score smooth = bleu(one, smoothing::exponential);
    CHECK(smooth.score == support::approx(100 * std::exp(-1.0 / 3) * std::pow(4.0 / 6 * 2 / 5 / 4 / 6, 0.25)));
    CHECK(smooth.precisions[3] == support::approx(100.0 / 6));
    // p = 1/4, 1/2 of 1/3, 1/4 of 1/2, 1/8 of 1.
    CHECK(bleu(count("a x y z", "a b c d"), smoothing::exponential).score ==
          support::approx(100 * std::pow(1.0 / 4 / 6 / 8 / 8, 0.25)));
    CHECK(bleu(count("v x y z", "a b c d"), smoothing::exponential).score == 0.0);  // no match at all
    CHECK(bleu(count("a b c", "a b c"), smoothing::exponential).score == 0.0);      // no 4-gram exists
    CHECK(bleu(count("a b c d", "a b c d"), smoothing::exponential).score == support::approx(100));
}

TEST_CASE("the statistics of sentences add up to those of the corpus")
{
    const std::vector<sentence> hypotheses{split("a b c d"), split("b c"), {}};
    const std::vector<std::vector<sentence>> references{{split("a b c e"), split("b c d"), split("a")}};
    const auto statistics = bleu_statistics(hypotheses, references);
    REQUIRE(statistics.size() == 3);
    CHECK(statistics[0].matches == four{3, 2, 1, 0});
    CHECK(statistics[1].matches == four{2, 1, 0, 0});
    CHECK(statistics[2].hypothesis_length == 0);
    bleu_counts sum;
    for (const bleu_counts& each : statistics) sum += each;
    CHECK(sum.matches == four{5, 3, 1, 0});
    CHECK(sum.totals == four{6, 4, 2, 1});
    CHECK(sum.hypothesis_length == 6);
    CHECK(sum.reference_length == 8);
    const std::vector<std::vector<sentence>> longer{references[0], std::vector<sentence>(4)};
    CHECK_THROWS_WITH_AS(bleu_statistics(hypotheses, longer),
                         "bleu: 3 hypotheses but 4 references; expected one of each per sentence", heed::error);
}
