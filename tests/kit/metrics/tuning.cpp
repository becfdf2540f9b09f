// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/random.hpp>
#include <heed_kit/metrics/bleu.hpp>
#include <heed_kit/metrics/tuning.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;

namespace {

// The simplest corpus score that is not a mean of sentence scores.
struct hits {
    double good = 0, bad = 0;
    hits& operator+=(const hits& other)
    {
        good += other.good;
        bad += other.bad;
        return *this;
    }
};

double ratio(const hits& sum) { return sum.good / (1 + sum.bad); }

rated_lists<hits> random_lists(std::size_t sentences, std::size_t hypotheses, std::size_t features, std::uint64_t seed)
{
    heed::random_source random{seed};
    rated_lists<hits> lists(sentences);
    for (auto& list : lists) {
        for (std::size_t k = 0; k < hypotheses; ++k) {
            const std::uint64_t stream = random.next_stream();
            rated_hypothesis<hits>& each = list.emplace_back();
            for (std::size_t m = 0; m < features; ++m) each.features.push_back(heed::normal(stream, m));
            each.statistics = {static_cast<double>(heed::below(5, stream, 90)),
                               static_cast<double>(heed::below(5, stream, 91))};
        }
    }
    return lists;
}

double score_at(const rated_lists<hits>& lists, const std::vector<double>& weights)
{
    hits sum;
    for (const auto& list : lists) {
        std::vector<std::vector<double>> features;
        for (const auto& each : list) features.push_back(each.features);
        sum += list[chosen_hypothesis(features, weights)].statistics;
    }
    return ratio(sum);
}

}  // namespace

TEST_CASE("the largest weighted sum is chosen, the first of equals")
{
    const std::vector<std::vector<double>> features{{1, 0}, {0, 3}, {2, 1}, {2, 1}};
    CHECK(chosen_hypothesis(features, std::vector<double>{1, 0}) == 2);
    CHECK(chosen_hypothesis(features, std::vector<double>{1, 2}) == 1);
    CHECK(chosen_hypothesis(features, std::vector<double>{-1, -1}) == 0);
}

TEST_CASE("the upper envelope of lines")
{
    // 0, γ, 2γ - 3 and 2γ - 4: the first up to 0, the second up to 3; γ - 1 and the last never.
    const auto all = detail::upper_envelope(std::vector<double>{0, 0, -1, -3, -4}, std::vector<double>{0, 1, 1, 2, 2});
    REQUIRE(all.size() == 3);
    CHECK(all[0].start == -std::numeric_limits<double>::infinity());
    CHECK(all[0].hypothesis == 0);
    CHECK(all[1].start == 0);
    CHECK(all[1].hypothesis == 1);
    CHECK(all[2].start == 3);
    CHECK(all[2].hypothesis == 3);
    // Three lines through one point: the middle one is never above the others.
    CHECK(detail::upper_envelope(std::vector<double>{0, 0, 0}, std::vector<double>{-1, 0, 1}).size() == 2);
    CHECK(detail::upper_envelope(std::vector<double>{1, 1}, std::vector<double>{2, 2}).front().hypothesis == 0);
}

TEST_CASE("the best point of a line is the best over all intervals")
{
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        const auto lists = random_lists(7, 6, 2, seed);
        const std::vector<double> weights{1, 0.25}, direction{-0.5, 1};
        const auto at = [&](double step) {
            return score_at(lists, {weights[0] + step * direction[0], weights[1] + step * direction[1]});
        };
        // The choice changes only where two hypotheses of a sentence are equal.
        std::vector<double> ends{-1e6, 1e6};
        for (const auto& list : lists) {
            for (const auto& one : list) {
                for (const auto& other : list) {
                    double difference = 0, slope = 0;
                    for (std::size_t m = 0; m < 2; ++m) {
                        difference += weights[m] * (one.features[m] - other.features[m]);
                        slope += direction[m] * (other.features[m] - one.features[m]);
                    }
                    if (slope != 0) ends.push_back(difference / slope);
                }
            }
        }
        std::sort(ends.begin(), ends.end());
        double highest = 0;
        for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
            if (ends[i + 1] - ends[i] > 1e-9) highest = std::max(highest, at((ends[i] + ends[i + 1]) / 2));
        }
        const line_optimum found = best_on_line(lists, weights, direction, ratio);
        CHECK(found.score == support::approx(highest));
        CHECK(at(found.step) == support::approx(highest));
    }
}

TEST_CASE("a hand-computed example: a weight that only helps between two values")
{
    // Sentence 1 is right for γ > 1, sentence 2 for γ < 3.
    const rated_lists<hits> lists{{{{1, 0}, {0, 1}}, {{0, 1}, {1, 0}}}, {{{3, 0}, {1, 0}}, {{0, 1}, {0, 1}}}};
    const line_optimum found = best_on_line(lists, std::vector<double>{1, 0}, std::vector<double>{0, 1}, ratio);
    CHECK(found.step == 2);
    CHECK(found.score == 2);
    const tuned_weights tuned = tune(lists, ratio, {.restarts = 0});
    CHECK(tuned.first_score == 0.5);
    CHECK(tuned.score == 2);
    CHECK(tuned.weights[0] == support::approx(1.0 / 3));
    CHECK(tuned.weights[1] == support::approx(2.0 / 3));
    // No improvement is possible: the weights stay.
    CHECK(best_on_line(lists, std::vector<double>{1, 1.5}, std::vector<double>{0, 1}, ratio).step == 0);
    CHECK(tune(lists, ratio, {.start = {1, 1.5}, .restarts = 0}).weights == std::vector<double>{0.4, 0.6});
}

TEST_CASE("planted weights are found and make all sentences correct")
{
    auto lists = random_lists(40, 8, 3, 7);
    const std::vector<double> planted{0.3, 0.5, -0.2};
    for (auto& list : lists) {
        std::vector<std::vector<double>> features;
        for (auto& each : list) {
            features.push_back(each.features);
            each.statistics = {0, 1};
        }
        list[chosen_hypothesis(features, planted)].statistics = {1, 0};
    }
    const tuned_weights tuned = tune(lists, ratio);
    CHECK(tuned.first_score < 2);
    CHECK(tuned.score == 40);
    CHECK(score_at(lists, tuned.weights) == 40);
    for (std::size_t m = 0; m < 3; ++m) CHECK(tuned.weights[m] == doctest::Approx(planted[m]).epsilon(0.3));
    CHECK(tune(lists, ratio).weights == tuned.weights);
}

TEST_CASE("BLEU of a corpus: a second model that prefers the longer of two translations")
{
    const auto rated = [](const std::string& hypothesis, std::vector<double> features) {
        bleu_counter counter;
        const auto reference = heed::text::split("a b c d e f");
        return rated_hypothesis<bleu_counts>{
            std::move(features), counter.add(heed::text::split(hypothesis), std::span<const std::string>(reference))};
    };
    const rated_lists<bleu_counts> lists{{rated("a b c d", {-1, 4}), rated("a b c d e f", {-2, 6})},
                                         {rated("a b c d e", {-1, 5}), rated("a b c d e f", {-1.5, 6})}};
    const auto score = [](const bleu_counts& sum) { return bleu(sum).score; };
    const tuned_weights tuned = tune(lists, score);
    CHECK(tuned.first_score == support::approx(100 * std::exp(1 - 12.0 / 9)));
    CHECK(tuned.score == support::approx(100));
    CHECK(2 * tuned.weights[1] > tuned.weights[0]);
}

TEST_CASE("lists that cannot be tuned are rejected")
{
    using lists = rated_lists<hits>;
    CHECK_THROWS_WITH_AS(tune(lists{}, ratio), "tune: no n-best lists; at least one is required", heed::error);
    CHECK_THROWS_WITH_AS(tune(lists{{{{1}, {}}}, {}}, ratio),
                         "tune: sentence 1 has no hypothesis; at least one is required", heed::error);
    CHECK_THROWS_WITH_AS(
        tune(lists{{{{1}, {}}, {{1, 2}, {}}}}, ratio),
        "tune: a hypothesis of sentence 0 has 2 features, the first one 1; all must have the same number, "
        "at least one",
        heed::error);
    CHECK_THROWS_WITH_AS(tune(lists{{{{std::nan("")}, {}}}}, ratio),
                         "tune: a feature of sentence 0 is nan; features must be finite", heed::error);
    CHECK_THROWS_WITH_AS(tune(lists{{{{1}, {}}}}, ratio, {.start = {1, 2}}),
                         "tune: 2 initial weights for 1 feature; give one for each feature, or none", heed::error);
}
