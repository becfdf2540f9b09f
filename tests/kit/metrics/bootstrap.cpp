// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/parallel.hpp>
#include <heed_kit/metrics/bleu.hpp>
#include <heed_kit/metrics/bootstrap.hpp>
#include <heed_kit/metrics/chrf.hpp>
#include <heed_kit/metrics/ribes.hpp>
#include <heed_kit/metrics/ter.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;

namespace {

// The mean, a metric whose bootstrap is known.
struct sum {
    double total = 0;
    std::size_t count = 0;

    sum& operator+=(const sum& other)
    {
        total += other.total;
        count += other.count;
        return *this;
    }
};

double mean(const sum& all) { return all.total / static_cast<double>(all.count); }

std::vector<sum> values(std::size_t count, double (*value)(std::size_t))
{
    std::vector<sum> result;
    for (std::size_t i = 0; i < count; ++i) result.push_back({value(i), 1});
    return result;
}

}  // namespace

TEST_CASE("the interval of a mean is that of its normal approximation")
{
    // 400 values of 0 and 1: the mean of a resample has the standard deviation 0.5 / 20 = 0.025.
    const auto coin = values(400, [](std::size_t i) { return static_cast<double>(i % 2); });
    bootstrap_options how;
    how.resamples = 4000;
    const bootstrap_score result = bootstrap(coin, mean, how);
    CHECK(result.score == 0.5);
    CHECK(std::abs(result.mean - 0.5) < 0.002);
    CHECK(std::abs(result.range.low - (0.5 - 1.96 * 0.025)) < 0.006);
    CHECK(std::abs(result.range.high - (0.5 + 1.96 * 0.025)) < 0.006);
    how.confidence = 0.5;
    CHECK(std::abs(bootstrap(coin, mean, how).range.high - (0.5 + 0.6745 * 0.025)) < 0.004);
}

TEST_CASE("a seed determines the result")
{
    const auto numbers = values(50, [](std::size_t i) { return std::sqrt(static_cast<double>(i)); });
    bootstrap_options how;
    const bootstrap_score first = bootstrap(numbers, mean, how), again = bootstrap(numbers, mean, how);
    CHECK(first.range.low == again.range.low);
    CHECK(first.mean == again.mean);
    how.seed = 2;
    CHECK(bootstrap(numbers, mean, how).mean != first.mean);
}

TEST_CASE("resamples do not depend on the number of threads")
{
    // One sum per resample, computed sequentially. For integers the sum does not depend on the order.
    const auto numbers = values(300, [](std::size_t i) { return static_cast<double>(i * i % 101); });
    const auto others = values(300, [](std::size_t i) { return static_cast<double>(i * i % 97); });
    bootstrap_options how;
    how.resamples = 50;
    how.seed = 7;
    std::vector<double> means, differences;
    heed::random_source source{how.seed};
    for (std::size_t b = 0; b < how.resamples; ++b) {
        const std::uint64_t stream = source.next_stream();
        sum one, other;
        for (std::size_t i = 0; i < 300; ++i) {
            one += numbers[heed::below(300, stream, i)];
            other += others[heed::below(300, stream, i)];
        }
        means.push_back(mean(one));
        differences.push_back(mean(other) - mean(one));
    }
    const bootstrap_score expected = detail::summarize(0, means, how.confidence);
    const bootstrap_score expected_difference = detail::summarize(0, differences, how.confidence);
    // Thirds: their sums depend on the order.
    const auto thirds = values(300, [](std::size_t i) { return static_cast<double>(i) / 3; });
    const bootstrap_score third = bootstrap(thirds, mean, how);
    for (const std::size_t threads : {1u, 2u, 3u, 7u}) {
        heed::set_threads(threads);
        const bootstrap_score result = bootstrap(numbers, mean, how);
        CHECK(result.mean == expected.mean);
        CHECK(result.range.low == expected.range.low);
        CHECK(result.range.high == expected.range.high);
        const paired_score paired = paired_bootstrap(numbers, others, mean, how);
        CHECK(paired.first.mean == expected.mean);
        CHECK(paired.difference.mean == expected_difference.mean);
        CHECK(paired.difference.range.high == expected_difference.range.high);
        CHECK(bootstrap(thirds, mean, how).mean == third.mean);
    }
    heed::set_threads(1);
}

TEST_CASE("progress is reported on the calling thread, which also calls the score")
{
    const auto numbers = values(20, [](std::size_t i) { return static_cast<double>(i); });
    const std::thread::id here = std::this_thread::get_id();
    const auto score = [&](const sum& all) {
        CHECK(std::this_thread::get_id() == here);
        return mean(all);
    };
    heed::set_threads(3);
    std::vector<std::size_t> told;
    bootstrap_options how;
    how.resamples = 100;
    how.seen = [&](std::size_t done, std::size_t all) {
        CHECK(std::this_thread::get_id() == here);
        CHECK(all == 100);
        CHECK((told.empty() || told.back() < done));
        told.push_back(done);
    };
    bootstrap(numbers, score, how);
    CHECK(told.size() >= 5);
    CHECK(told.back() == 100);
    told.clear();
    paired_bootstrap(numbers, numbers, score, how);
    CHECK(told.back() == 100);
    heed::set_threads(1);
}

TEST_CASE("sentence statistics do not depend on the number of threads, and progress is reported")
{
    // 2100 sentences of up to nine words, truncated or with their first words moved.
    std::vector<heed::text::sentence> references, hypotheses;
    std::vector<std::string> lines, other_lines;
    for (std::uint64_t i = 0; i < 2100; ++i) {
        heed::text::sentence words;
        for (std::uint64_t n = 0; n < heed::below(10, 1, i); ++n)
            words.push_back(std::string(1, static_cast<char>('a' + heed::below(7, 2 + i, n))));
        references.push_back(words);
        if (words.size() > 3) std::rotate(words.begin(), words.begin() + 2, words.end());
        if (i % 3 == 0 && !words.empty()) words.pop_back();
        hypotheses.push_back(words);
        lines.push_back(heed::text::join(hypotheses.back()));
        other_lines.push_back(heed::text::join(references.back()));
    }
    const std::vector<std::vector<heed::text::sentence>> both{references, hypotheses};
    std::size_t done_last = 0, calls = 0;
    const progress seen = [&](std::size_t done, std::size_t all) {
        CHECK(all == 2100);
        CHECK(done > done_last);
        done_last = done == all ? 0 : done;
        ++calls;
    };
    const auto all_of = [&] {
        std::vector<double> numbers;
        for (const bleu_counts& each : bleu_statistics(hypotheses, both, seen))
            numbers.insert(numbers.end(), {static_cast<double>(each.matches[0]), static_cast<double>(each.totals[3]),
                                           static_cast<double>(each.reference_length)});
        for (const ter_counts& each : ter_statistics(hypotheses, references, seen))
            numbers.insert(numbers.end(), {static_cast<double>(each.edits), static_cast<double>(each.shifts)});
        for (const chrf_counts& each : chrf_statistics(lines, other_lines, {}, seen))
            numbers.insert(numbers.end(), {static_cast<double>(each.matches[0]), static_cast<double>(each.matches[2])});
        for (const ribes_sum& each : ribes_statistics(hypotheses, references, {}, seen)) numbers.push_back(each.total);
        return numbers;
    };
    const std::vector<double> alone = all_of();
    CHECK(done_last == 0);
    CHECK(calls >= 8);
    for (const std::size_t threads : {2u, 5u}) {
        heed::set_threads(threads);
        CHECK(all_of() == alone);
    }
    // If several sentences are rejected, the error names the first, as with one thread.
    other_lines[2000] = "\xff";
    other_lines[10] = "ab\xff";
    CHECK_THROWS_WITH_AS(chrf_statistics(lines, other_lines), "chrf: byte 3 of the reference is not valid UTF-8",
                         heed::error);
    heed::set_threads(1);
}

TEST_CASE("without variance, the interval is a point")
{
    const bootstrap_score one = bootstrap(values(1, [](std::size_t) { return 7.0; }), mean);
    CHECK(one.range.low == 7.0);
    CHECK(one.range.high == 7.0);
    bootstrap_options how;
    how.resamples = 1;
    CHECK(bootstrap(values(9, [](std::size_t) { return 7.0; }), mean, how).range.low == 7.0);
}

TEST_CASE("each tail has the requested probability")
{
    std::vector<double> hundred(100);
    for (std::size_t i = 0; i < 100; ++i) hundred[i] = static_cast<double>(99 - i);
    CHECK(detail::summarize(0, hundred, 0.9).range.low == 5);
    CHECK(detail::summarize(0, hundred, 0.9).range.high == 94);
    CHECK(detail::summarize(0, hundred, 0.8).range.low == 10);
    CHECK(detail::summarize(0, hundred, 0.999).range.low == 0);
    CHECK(detail::summarize(0, hundred, 1e-9).range.low <= detail::summarize(0, hundred, 1e-9).range.high);
    CHECK(detail::summarize(0, hundred, 0.9).mean == support::approx(49.5));
}

TEST_CASE("p-values of identical, clearly different and barely different systems")
{
    const auto one = values(200, [](std::size_t i) { return static_cast<double>(i % 7); });
    const paired_score same = paired_bootstrap(one, one, mean);
    CHECK(same.p_value == 1.0);
    CHECK(same.difference.score == 0.0);
    CHECK(same.first_larger == 0.0);
    CHECK(same.second_larger == 0.0);

    // Better by 1 in every sentence: every resample has this difference, although the scores vary.
    const auto better = values(200, [](std::size_t i) { return static_cast<double>(i % 7) + 1; });
    const paired_score clear = paired_bootstrap(one, better, mean);
    CHECK(clear.difference.score == support::approx(1));
    CHECK(clear.difference.range.low == support::approx(1));
    CHECK(clear.p_value == support::approx(1.0 / 1001));
    CHECK(clear.second_larger == support::approx(1));
    CHECK(clear.first.range.low < clear.first.range.high);
    const paired_score turned = paired_bootstrap(better, one, mean);
    CHECK(turned.difference.score == support::approx(-1));
    CHECK(turned.first_larger == support::approx(1));
    CHECK(turned.p_value == support::approx(1.0 / 1001));

    // Alternating ±1, and once 0 instead of -1: a difference of 1/200 where the standard deviation is 1/√200.
    const auto noisy = values(200, [](std::size_t i) {
        return static_cast<double>(i % 7) + (i == 0 ? 0.0 : i % 2 == 0 ? -1.0 : 1.0);
    });
    const paired_score chance = paired_bootstrap(one, noisy, mean);
    CHECK(chance.p_value > 0.8);
    CHECK(chance.difference.range.low < 0);
    CHECK(chance.difference.range.high > 0);
}

TEST_CASE("the p-value is that of the normal approximation")
{
    // d = 0.1 with a standard deviation of √(1 - 0.01) / 20 = 0.04975: z = 2.01, two-sided p = 0.0444.
    const auto zero = values(400, [](std::size_t) { return 0.0; });
    const auto tilted = values(400, [](std::size_t i) { return i < 220 ? 1.0 : -1.0; });
    bootstrap_options how;
    how.resamples = 4000;
    const paired_score result = paired_bootstrap(zero, tilted, mean, how);
    CHECK(result.difference.score == support::approx(0.1));
    CHECK(std::abs(result.p_value - 0.0444) < 0.012);
    CHECK(std::abs(result.second_larger - 0.975) < 0.01);
}

TEST_CASE("invalid input and options are rejected")
{
    const std::vector<sum> none, two(2, sum{1, 1}), three(3, sum{1, 1});
    CHECK_THROWS_WITH_AS(bootstrap(none, mean), "bootstrap: no sentences; at least one is required", heed::error);
    CHECK_THROWS_WITH_AS(
        paired_bootstrap(two, three, mean),
        "paired_bootstrap: 2 sentences of the first system but 3 of the second; both must have translated "
        "the same sentences",
        heed::error);
    CHECK_THROWS_AS(paired_bootstrap(none, none, mean), heed::error);
    bootstrap_options how;
    how.resamples = 0;
    CHECK_THROWS_AS(bootstrap(two, mean, how), heed::error);
    for (const double confidence : {0.0, 1.0, -0.5, 1.5, std::nan("")}) {
        how = {};
        how.confidence = confidence;
        CHECK_THROWS_AS(bootstrap(two, mean, how), heed::error);
    }
}
