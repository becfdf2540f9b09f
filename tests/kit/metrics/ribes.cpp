// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/random.hpp>
#include <heed_kit/metrics/ribes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;
using heed::text::sentence;
using heed::text::split;

namespace {

using places = std::vector<std::optional<std::size_t>>;

ribes_score judge(const std::string& hypothesis, const std::string& reference)
{
    const sentence one = split(hypothesis), other = split(reference);
    return ribes(std::span<const std::string>(one), std::span<const std::string>(other));
}

std::size_t occurrences(const sentence& part, const sentence& text)
{
    std::size_t count = 0;
    for (std::size_t i = 0; i + part.size() <= text.size(); ++i)
        count += std::equal(part.begin(), part.end(), text.begin() + static_cast<std::ptrdiff_t>(i)) ? 1u : 0u;
    return count;
}

// By definition, word by word.
places by_definition(const sentence& hypothesis, const sentence& reference)
{
    const auto cut = [](const sentence& from, std::size_t begin, std::size_t length) {
        return sentence(from.begin() + static_cast<std::ptrdiff_t>(begin),
                        from.begin() + static_cast<std::ptrdiff_t>(begin + length));
    };
    const auto diagonal_of = [&](const sentence& part) {
        std::size_t i = 0;
        while (cut(reference, i, part.size()) != part) ++i;
        return i;
    };
    places result(hypothesis.size());
    for (std::size_t i = 0; i < hypothesis.size(); ++i) {
        for (std::size_t length = 1; length <= hypothesis.size() && !result[i]; ++length) {
            if (length <= i + 1) {
                const sentence before = cut(hypothesis, i + 1 - length, length);
                if (occurrences(before, hypothesis) == 1 && occurrences(before, reference) == 1)
                    result[i] = diagonal_of(before) + length - 1;
            }
            if (!result[i] && i + length <= hypothesis.size()) {
                const sentence after = cut(hypothesis, i, length);
                if (occurrences(after, hypothesis) == 1 && occurrences(after, reference) == 1)
                    result[i] = diagonal_of(after);
            }
        }
    }
    return result;
}

}  // namespace

TEST_CASE("the example of Isozaki et al. 2010, where cause and effect change places")
{
    // Kendall's τ of the word order that the paper gives, as published: -0.236.
    const double published = static_cast<double>(detail::ascending_pairs({7, 8, 9, 10, 6, 0, 1, 2, 3, 4, 5})) / 55;
    CHECK(2 * published - 1 == doctest::Approx(-0.236).epsilon(0.002));
    // The authors' program compares preceding words first, so that "because he" also makes the second "he" the eighth
    // word.
    const sentence reference = split("he was interested in world history because he read the book");
    const sentence hypothesis = split("he read the book because he was interested in world history");
    CHECK(rank_alignment(hypothesis, reference) == places{7, 8, 9, 10, 6, 7, 1, 2, 3, 4, 5});
    const ribes_score score = ribes(std::span<const std::string>(hypothesis), std::span<const std::string>(reference));
    CHECK(score.order == support::approx(17.0 / 55));
    CHECK(score.precision == 1.0);
    CHECK(score.brevity_penalty == 1.0);
    CHECK(score.score == support::approx(17.0 / 55));
}

TEST_CASE("a hand-computed example of precision and brevity")
{
    // "a c b x" for "a b c d e": positions 0 2 1, so 2 of 3 pairs ascend; 3 of 4 words; BP = exp(1 - 5/4).
    const ribes_score score = judge("a c b x", "a b c d e");
    CHECK(score.order == support::approx(2.0 / 3));
    CHECK(score.precision == support::approx(0.75));
    CHECK(score.brevity_penalty == support::approx(std::exp(-0.25)));
    CHECK(score.score == support::approx(2.0 / 3 * std::pow(0.75, 0.25) * std::exp(-0.025)));
}

TEST_CASE("identical, reversed, disjoint, short and empty sentences")
{
    CHECK(judge("a b c d", "a b c d").score == 1.0);
    CHECK(judge("d c b a", "a b c d").score == 0.0);
    CHECK(judge("x y z", "a b c").score == 0.0);
    CHECK(judge("a x y", "a b c").score == 0.0);  // a single word has no order
    CHECK(judge("a", "a").score == 1.0);
    CHECK(judge("a x", "a").score == support::approx(std::pow(0.5, 0.25)));
    CHECK(judge("", "a b").score == 0.0);
    CHECK_THROWS_WITH_AS(judge("a", ""), "ribes: a reference has no words; at least one is required", heed::error);
}

TEST_CASE("repeated words are identified by their context")
{
    // The first "the" by "the cat", the second by "on the", although "on the mat" would work as well.
    CHECK(rank_alignment(split("the cat on the mat"), split("the cat sat on the mat")) == places{0, 1, 3, 4, 5});
    CHECK(rank_alignment(split("a a"), split("a a")) ==
          places{0, 1});  // the first "a" begins "a a", the second ends it
    CHECK(rank_alignment(split("a a a"), split("a a")) == places{std::nullopt, std::nullopt, std::nullopt});
    CHECK(rank_alignment(split("a"), split("a a")) == places{std::nullopt});
    CHECK(rank_alignment({}, split("a")).empty());
    CHECK(rank_alignment(split("a"), {}) == places{std::nullopt});
}

TEST_CASE("ranks of random short sentences equal the definition")
{
    heed::random_source source{5};
    for (std::size_t round = 0; round < 300; ++round) {
        const std::uint64_t stream = source.next_stream();
        const std::size_t words = 1 + round % 6;
        sentence hypothesis(heed::below(14, stream, 0)), reference(heed::below(14, stream, 1));
        std::uint64_t i = 2;
        for (sentence* const each : {&hypothesis, &reference})
            for (std::string& word : *each)
                word = std::string(1, static_cast<char>('a' + heed::below(words, stream, i++)));
        CAPTURE(heed::text::join(hypothesis));
        CAPTURE(heed::text::join(reference));
        CHECK(rank_alignment(hypothesis, reference) == by_definition(hypothesis, reference));
    }
}

TEST_CASE("ascending pairs are counted")
{
    CHECK(detail::ascending_pairs({}) == 0);
    CHECK(detail::ascending_pairs({3}) == 0);
    CHECK(detail::ascending_pairs({1, 2, 3, 4, 5}) == 10);
    CHECK(detail::ascending_pairs({5, 4, 3, 2, 1}) == 0);
    CHECK(detail::ascending_pairs({2, 2, 2}) == 0);
    CHECK(detail::ascending_pairs({3, 1, 4, 1, 5, 9, 2, 6}) == 19);
}

TEST_CASE("the corpus score is the mean over sentences with a reference")
{
    const std::vector<sentence> hypotheses{split("a b c d"), split("d c b a"), split("x")};
    const std::vector<sentence> references{split("a b c d"), split("a b c d"), {}};
    CHECK(ribes(hypotheses, references) == support::approx(0.5));
    CHECK(ribes(std::vector<sentence>{}, std::vector<sentence>{}) == 0.0);
    CHECK_THROWS_WITH_AS(ribes(std::vector<sentence>(2), std::vector<sentence>(3)),
                         "ribes: 2 hypotheses but 3 references; expected one of each per sentence", heed::error);
}

TEST_CASE("with several references, the best score per sentence is used; references without words are ignored")
{
    const sentence hypothesis = split("a b c d");
    const std::span<const std::string> words(hypothesis);
    CHECK(ribes(words, std::vector<sentence>{split("d c b a"), split("a b c d")}).score == 1.0);
    // Of "a b d c" five of six pairs are in order, of "b a d c" four.
    CHECK(ribes(words, std::vector<sentence>{split("b a d c"), {}, split("a b d c")}).score ==
          support::approx(5.0 / 6));
    CHECK_THROWS_WITH_AS(ribes(words, std::vector<sentence>{{}, {}}),
                         "ribes: a reference has no words; at least one is required", heed::error);
    const std::vector<std::vector<sentence>> sets{{split("b a d c"), {}, {}}, {split("a b d c"), split("x y"), {}}};
    const auto each = ribes_statistics(std::vector<sentence>{hypothesis, split("x y"), split("x")}, sets);
    CHECK(each[0].total == support::approx(5.0 / 6));
    CHECK(each[1].total == 1.0);
    CHECK(each[1].sentences == 1);
    CHECK(each[2].sentences == 0);
    CHECK_THROWS_AS(ribes_statistics(std::vector<sentence>(2), sets), heed::error);
}

TEST_CASE("degenerate output of a model does not hang the metric")
{
    const sentence word(2592, "the");
    // Only the whole sentence is unique, so its first and its last word are identified: P = 2 / 2592 = 1 / 6⁴.
    CHECK(ribes(std::span<const std::string>(word), std::span<const std::string>(word)).score ==
          support::approx(1.0 / 6));
}
