// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/core/random.hpp>
#include <heed_kit/metrics/bootstrap.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// Combines several models to select from n-best lists: each hypothesis k of sentence s has features f
/// (log-probabilities of the models, its length ...), and the hypothesis with the largest weighted sum is selected:
///
///     ê_s(λ) = argmax_k Σ_m λ_m f_m(s, k)
///
/// The weights λ maximize the corpus score on a development set (minimum error rate training, Och 2003). Along a line λ
/// + γ d, the sum of each hypothesis is linear in γ, so the selection for each sentence changes at finitely many γ,
/// which are computed exactly, as is the best γ. The search follows coordinates; restarts from random weights help to
/// escape local optima. Deterministic for any number of threads.
namespace heed::inline HEED_TARGET::metrics {

/// A hypothesis of an n-best list: its features, and its statistics relative to the reference (bleu_counts, ter_counts
/// ...).
template <class Statistics>
struct rated_hypothesis {
    std::vector<double> features;
    Statistics statistics;
};

/// The hypotheses of each sentence.
template <class Statistics>
using rated_lists = std::vector<std::vector<rated_hypothesis<Statistics>>>;

/// Options of the search: coordinate ascent from several starts.
struct tuning_options {
    std::vector<double> start{};  ///< the initial weights; empty: 1 for the first feature, 0 for the others
    std::size_t restarts = 20;    ///< number of additional starts from random weights
    std::size_t moves = 100;      ///< maximum number of points on a coordinate for each start
    std::uint64_t seed = 1;       ///< seed of the random weights
};

/// Tuned weights and their scores.
struct tuned_weights {
    std::vector<double> weights;  ///< Σ |λ_m| = 1
    double score = 0;             ///< score of the development set with the tuned weights
    double first_score = 0;       ///< score with the initial weights
};

/// The hypothesis with the largest weighted sum of its features; the first of equals.
inline std::size_t chosen_hypothesis(std::span<const std::vector<double>> features, std::span<const double> weights)
{
    std::size_t best = 0;
    double highest = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < features.size(); ++k) {
        double sum = 0;
        for (std::size_t m = 0; m < weights.size(); ++m) sum += weights[m] * features[k][m];
        if (sum > highest) {
            highest = sum;
            best = k;
        }
    }
    return best;
}

namespace detail {

/// From `start` until the next segment, the hypothesis is the best of its sentence.
struct reign {
    double start;
    std::size_t hypothesis;
};

/// The upper envelope of the lines intercept + γ slope, from γ = -∞ on. The first of equal lines.
inline std::vector<reign> upper_envelope(std::span<const double> intercepts, std::span<const double> slopes)
{
    std::vector<std::size_t> order(slopes.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::tuple(slopes[a], -intercepts[a], a) < std::tuple(slopes[b], -intercepts[b], b);
    });
    std::vector<reign> result;
    for (const std::size_t k : order) {
        if (!result.empty() && slopes[result.back().hypothesis] == slopes[k]) continue;  // parallel and not above
        double start = -std::numeric_limits<double>::infinity();
        while (!result.empty()) {
            const std::size_t last = result.back().hypothesis;
            start = (intercepts[last] - intercepts[k]) / (slopes[k] - slopes[last]);
            if (start > result.back().start) break;
            result.pop_back();
            start = -std::numeric_limits<double>::infinity();
        }
        result.push_back({start, k});
    }
    return result;
}

/// Sums of one value per sentence, of which one changes at a time, in a binary tree. It never subtracts, so it supports
/// all statistics, and rounding errors do not accumulate.
template <class Statistics>
class changing_sum {
public:
    explicit changing_sum(const std::vector<Statistics>& values) : leaves_(1)
    {
        while (leaves_ < values.size()) leaves_ *= 2;
        nodes_.resize(2 * leaves_);
        std::copy(values.begin(), values.end(), nodes_.begin() + static_cast<std::ptrdiff_t>(leaves_));
        for (std::size_t node = leaves_ - 1; node > 0; --node) add_up(node);
    }

    void change(std::size_t i, const Statistics& value)
    {
        nodes_[leaves_ + i] = value;
        for (std::size_t node = (leaves_ + i) / 2; node > 0; node /= 2) add_up(node);
    }

    const Statistics& total() const { return nodes_[1]; }

private:
    void add_up(std::size_t node)
    {
        nodes_[node] = nodes_[2 * node];
        nodes_[node] += nodes_[2 * node + 1];
    }

    std::size_t leaves_;
    std::vector<Statistics> nodes_;
};

}  // namespace detail

/// A point on a line and its score.
struct line_optimum {
    double step = 0;  ///< γ
    double score = 0;
};

/// The best point on the line weights + γ direction: exactly, over all γ. It is the middle of the interval of γ with
/// the highest score (of equals, the one with γ = 0, otherwise the first), or 0 if that interval contains 0.
/// Time n log n in the hypotheses.
template <class Statistics, class Score>
    requires summed_score<Statistics, Score> line_optimum best_on_line(const rated_lists<Statistics>& lists,
                                                                       std::span<const double> weights,
                                                                       std::span<const double> direction,
                                                                       const Score& score)
    {
        struct change {
            double at;
            std::size_t sentence, hypothesis;
        };
        std::vector<change> changes;
        std::vector<Statistics> first;
        std::vector<double> intercepts, slopes;
        for (std::size_t s = 0; s < lists.size(); ++s) {
            intercepts.assign(lists[s].size(), 0.0);
            slopes.assign(lists[s].size(), 0.0);
            for (std::size_t k = 0; k < lists[s].size(); ++k) {
                for (std::size_t m = 0; m < weights.size(); ++m) {
                    intercepts[k] += weights[m] * lists[s][k].features[m];
                    slopes[k] += direction[m] * lists[s][k].features[m];
                }
            }
            const std::vector<detail::reign> envelope = detail::upper_envelope(intercepts, slopes);
            first.push_back(lists[s][envelope.front().hypothesis].statistics);
            for (std::size_t i = 1; i < envelope.size(); ++i)
                changes.push_back({envelope[i].start, s, envelope[i].hypothesis});
        }
        std::sort(changes.begin(), changes.end(), [](const change& a, const change& b) {
            return std::tuple(a.at, a.sentence, a.hypothesis) < std::tuple(b.at, b.sentence, b.hypothesis);
        });

        constexpr double infinity = std::numeric_limits<double>::infinity();
        const auto inside = [](double begin, double end) {
            if (begin < 0 && end > 0) return 0.0;
            if (begin == -infinity) return end - std::max(1.0, std::abs(end)) / 10;
            if (end == infinity) return begin + std::max(1.0, std::abs(begin)) / 10;
            return begin + (end - begin) / 2;
        };
        detail::changing_sum<Statistics> sum(first);
        line_optimum best{0, -infinity};
        double begin = -infinity;
        for (std::size_t i = 0;;) {
            const double end = i < changes.size() ? changes[i].at : infinity;
            const double here = static_cast<double>(score(sum.total()));
            if (const double step = inside(begin, end); here > best.score || (here == best.score && step == 0))
                best = {step, here};
            if (i == changes.size()) return best;
            begin = end;
            for (; i < changes.size() && changes[i].at == begin; ++i)
                sum.change(changes[i].sentence, lists[changes[i].sentence][changes[i].hypothesis].statistics);
        }
    }

/// The weights with the highest corpus score: `score` computes a number from summed statistics, as for bootstrap(); for
/// an error rate, return its negative. Throws heed::error without sentences, if a sentence has no hypothesis, if the
/// numbers of features differ, or if a feature is not finite.
template <class Statistics, class Score>
    requires summed_score<Statistics, Score> tuned_weights tune(const rated_lists<Statistics>& lists,
                                                                const Score& score, const tuning_options& how = {})
    {
        if (lists.empty()) throw error("tune: no n-best lists; at least one is required");
        const std::size_t features = lists.front().empty() ? 0 : lists.front().front().features.size();
        for (std::size_t s = 0; s < lists.size(); ++s) {
            if (lists[s].empty())
                throw error("tune: sentence " + std::to_string(s) + " has no hypothesis; at least one is required");
            for (const auto& each : lists[s]) {
                if (each.features.size() != features || features == 0)
                    throw error("tune: a hypothesis of sentence " + std::to_string(s) + " has " +
                                counted(each.features.size(), "feature") + ", the first one " +
                                std::to_string(features) + "; all must have the same number, at least one");
                for (const double value : each.features)
                    if (!std::isfinite(value))
                        throw error("tune: a feature of sentence " + std::to_string(s) + " is " +
                                    std::to_string(value) + "; features must be finite");
            }
        }
        if (!how.start.empty() && how.start.size() != features)
            throw error("tune: " + counted(how.start.size(), "initial weight") + " for " +
                        counted(features, "feature") + "; give one for each feature, or none");

        const auto score_with = [&](const std::vector<double>& weights) {
            Statistics sum{};
            std::vector<std::vector<double>> all;
            for (const auto& list : lists) {
                all.clear();
                for (const auto& each : list) all.push_back(each.features);
                sum += list[chosen_hypothesis(all, weights)].statistics;
            }
            return static_cast<double>(score(sum));
        };
        const auto climb = [&](std::vector<double> weights) {
            double reached = score_with(weights);
            for (std::size_t move = 0; move < how.moves; ++move) {
                std::vector<double> next = weights;
                double best = reached;
                for (std::size_t m = 0; m < features; ++m) {
                    std::vector<double> direction(features, 0.0), moved = weights;
                    direction[m] = 1;
                    const line_optimum found = best_on_line(lists, weights, direction, score);
                    if (!(found.score > best)) continue;
                    moved[m] += found.step;
                    // With rounding, the middle of a very small interval may select other hypotheses.
                    if (const double there = score_with(moved); there > best) {
                        best = there;
                        next = moved;
                    }
                }
                if (!(best > reached)) break;
                reached = best;
                weights = next;
            }
            return std::pair(reached, weights);
        };

        std::vector<double> start = how.start;
        if (start.empty()) {
            start.assign(features, 0.0);
            start.front() = 1;
        }
        tuned_weights result;
        result.first_score = score_with(start);
        std::tie(result.score, result.weights) = climb(start);
        random_source random{how.seed};
        for (std::size_t i = 0; i < how.restarts; ++i) {
            const std::uint64_t stream = random.next_stream();
            for (std::size_t m = 0; m < features; ++m) start[m] = 2 * uniform(stream, m) - 1;
            auto [reached, weights] = climb(start);
            if (reached > result.score) {
                result.score = reached;
                result.weights = std::move(weights);
            }
        }
        double size = 0;
        for (const double weight : result.weights) size += std::abs(weight);
        if (size > 0)
            for (double& weight : result.weights) weight /= size;
        return result;
    }

}  // namespace heed::inline HEED_TARGET::metrics
