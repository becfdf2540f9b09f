// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/core/random.hpp>
#include <heed_kit/metrics/progress.hpp>
#include <heed_kit/metrics/require_as_many.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Estimates the random variation of a corpus score: resamples the sentences with replacement, a thousand times, and
/// measures the variation of the score. A metric provides statistics per sentence (`bleu_counts`, `ter_counts` …), so a
/// resample is a sum instead of another evaluation. heed's threads share the resamples; the result does not depend on
/// the number of threads.
namespace heed::inline HEED_TARGET::metrics {

/// Options of the resampling.
struct bootstrap_options {
    std::size_t resamples = 1000;
    double confidence = 0.95;  ///< level of the interval, above 0 and below 1
    std::uint64_t seed = 1;    ///< equal seeds give equal results on every machine
    progress seen = {};        ///< called with the number of completed resamples
};

/// A confidence interval.
struct interval {
    double low = 0;
    double high = 0;
};

/// A score and its bootstrap statistics.
struct bootstrap_score {
    double score = 0;  ///< score of the corpus
    double mean = 0;   ///< mean of the resamples
    interval range;    ///< range of the resamples without the lowest and highest (1 - confidence) / 2
};

/// Two systems on the same sentences.
struct paired_score {
    bootstrap_score first;
    bootstrap_score second;
    bootstrap_score difference;  ///< second - first
    double p_value = 1;          ///< above 0, at most 1; small if the difference is unlikely to be chance
    double first_larger = 0;     ///< share of the resamples in which the first scores higher (Koehn's "wins")
    double second_larger = 0;    ///< share in which the second scores higher; ties count for neither
};

/// Statistics that can be summed over sentences, and a function `score` that computes a number from their sum.
template <class Statistics, class Score>
concept summed_score = std::default_initializable<Statistics> && std::copyable<Statistics> &&
    requires(Statistics sum, const Statistics& each, const Score& score)
{
    sum += each;
    {
        score(sum)
        } -> std::convertible_to<double>;
};

namespace detail {

inline void check(const bootstrap_options& how, std::size_t sentences)
{
    if (sentences == 0) throw error("bootstrap: no sentences; at least one is required");
    if (how.resamples == 0) throw error("bootstrap: 0 resamples; at least one is required");
    if (!(how.confidence > 0 && how.confidence < 1))
        throw error("bootstrap: a confidence of " + std::to_string(how.confidence) +
                    "; it must be above 0 and below 1, such as 0.95");
}

inline bootstrap_score summarize(double score, std::vector<double> resampled, double confidence)
{
    bootstrap_score result;
    result.score = score;
    for (const double each : resampled) result.mean += each / static_cast<double>(resampled.size());
    std::sort(resampled.begin(), resampled.end());
    // 1000 resamples at 0.95: 25 are cut off at each end. The small number compensates (1 - 0.9) / 2 · 1000 = 49.999….
    const auto cut = static_cast<std::size_t>((1 - confidence) / 2 * static_cast<double>(resampled.size()) + 1e-6);
    const std::size_t low = std::min(cut, (resampled.size() - 1) / 2);
    result.range = {resampled[low], resampled[resampled.size() - 1 - low]};
    return result;
}

template <class Statistics>
Statistics sum_of(const std::vector<Statistics>& sentences)
{
    Statistics sum{};
    for (const Statistics& each : sentences) sum += each;
    return sum;
}

/// The sums of each resample, of one or two systems on the same sentences: result[b][s].
template <class Statistics, std::size_t Systems>
std::vector<std::array<Statistics, Systems>>
resample(const std::array<const std::vector<Statistics>*, Systems>& systems, const bootstrap_options& how)
{
    const std::size_t sentences = systems[0]->size();
    std::vector<std::uint64_t> streams(how.resamples);
    random_source source{how.seed};
    for (std::uint64_t& stream : streams) stream = source.next_stream();

    std::vector<std::array<Statistics, Systems>> result(how.resamples);
    constexpr std::size_t together = 4;
    in_pieces(how.resamples, together, how.seen, [&](std::size_t begin, std::size_t end) {
        std::array<std::vector<std::uint32_t>, together> times;
        for (std::size_t first = begin; first < end; first += together) {
            const std::size_t some = std::min(together, end - first);
            for (std::size_t k = 0; k < some; ++k) {
                times[k].assign(sentences, 0u);
                for (std::size_t i = 0; i < sentences; ++i) ++times[k][below(sentences, streams[first + k], i)];
            }
            // In text order, adding each sentence as often as it was drawn. In drawing order, each access would be a
            // cache miss and several times slower. Several resamples are processed together, so that each sentence is
            // fetched once.
            for (std::size_t s = 0; s < Systems; ++s) {
                const std::vector<Statistics>& system = *systems[s];
                std::array<Statistics, together> sums{};
                for (std::size_t i = 0; i < sentences; ++i) {
                    for (std::size_t k = 0; k < some; ++k)
                        for (std::uint32_t again = times[k][i]; again > 0; --again) sums[k] += system[i];
                }
                for (std::size_t k = 0; k < some; ++k) result[first + k][s] = sums[k];
            }
        }
    });
    return result;
}

}  // namespace detail

/// A corpus score with its confidence interval.                                              Koehn 2004, section 3
///
/// `score` computes a number from summed statistics: `bootstrap(statistics, [](const bleu_counts& c) { return
/// bleu(c).score; })`. It is called only on the calling thread, `+=` by several threads. Time: resamples · sentences
/// additions. Throws heed::error without sentences, and for options out of range.
template <class Statistics, class Score>
    requires summed_score<Statistics, Score> bootstrap_score bootstrap(const std::vector<Statistics>& sentences,
                                                                       const Score& score,
                                                                       const bootstrap_options& how = {})
    {
        detail::check(how, sentences.size());
        std::vector<double> resampled;
        for (const auto& [sum] : detail::resample(std::array{&sentences}, how))
            resampled.push_back(static_cast<double>(score(sum)));
        return detail::summarize(static_cast<double>(score(detail::sum_of(sentences))), std::move(resampled),
                                 how.confidence);
    }

/// Tests whether two systems differ by more than chance: both are scored on the same resamples.
///
///     p = (1 + #{b : |d_b - mean(d)| ≥ |d|}) / (1 + resamples)     d the difference, d_b that of resample b
///
/// Koehn 2004, section 4, for the resamples; Riezler & Maxwell 2005 for the p-value, which shifts the resamples to a
/// difference of 0. It is two-sided: about twice the p-value of Moses' and sacrebleu's one-sided test, and 1 for a
/// system against itself. With very few sentences there are few distinct resamples, and p may be meaninglessly small.
/// Throws heed::error as bootstrap() does, and if the numbers of sentences differ.
template <class Statistics, class Score>
    requires summed_score<Statistics, Score> paired_score paired_bootstrap(const std::vector<Statistics>& first,
                                                                           const std::vector<Statistics>& second,
                                                                           const Score& score,
                                                                           const bootstrap_options& how = {})
    {
        if (first.size() != second.size())
            throw error("paired_bootstrap: " + counted(first.size(), "sentence") + " of the first system but " +
                        std::to_string(second.size()) + " of the second; both must have translated the same sentences");
        detail::check(how, first.size());
        const double of_first = static_cast<double>(score(detail::sum_of(first)));
        const double of_second = static_cast<double>(score(detail::sum_of(second)));
        const double difference = of_second - of_first;

        std::vector<double> firsts, seconds, differences;
        paired_score result;
        double mean = 0;
        for (const auto& [one, other] : detail::resample(std::array{&first, &second}, how)) {
            firsts.push_back(static_cast<double>(score(one)));
            seconds.push_back(static_cast<double>(score(other)));
            differences.push_back(seconds.back() - firsts.back());
            const double share = 1 / static_cast<double>(how.resamples);
            mean += differences.back() * share;
            if (differences.back() < 0) result.first_larger += share;
            if (differences.back() > 0) result.second_larger += share;
        }
        std::size_t as_far = 0;
        for (const double each : differences) as_far += std::abs(each - mean) >= std::abs(difference) ? 1u : 0u;
        result.p_value = static_cast<double>(1 + as_far) / static_cast<double>(1 + how.resamples);
        result.first = detail::summarize(of_first, std::move(firsts), how.confidence);
        result.second = detail::summarize(of_second, std::move(seconds), how.confidence);
        result.difference = detail::summarize(difference, std::move(differences), how.confidence);
        return result;
    }

}  // namespace heed::inline HEED_TARGET::metrics
