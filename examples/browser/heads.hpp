// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <heed/heads/differential.hpp>
#include <heed/heads/gated.hpp>
#include <heed/heads/latent_heads.hpp>
#include <heed/heads/multi_head.hpp>
#include <heed/heads/talking_heads.hpp>
#include <heed/heed.hpp>

#include "any_policy.hpp"
#include "policies.hpp"
#include "scene.hpp"

/// Two heads with the playground's scores and normalizers; the ways to join them are in its list of combiners.
///
/// The first head uses the query, the second the query rotated in the plane; both read the unchanged words, and W_O
/// averages their contexts. Only the parameters shown on the page can be changed.
namespace browser {

inline constexpr std::size_t heads = 2;

/// The parts of the heads; each has a separate normalizer, which may have a state.
struct head_parts {
    any_score<weight_kind::per_position> score;
    std::function<any_normalizer<weight_kind::per_position>()> normalizer;
};

using ask_heads = std::function<answers(const head_parts& of, settings_of_policy, const scene&)>;

namespace detail {

inline matrix blank(std::size_t n, std::size_t m) { return heed::filled<double, 2>({n, m}, 0.0); }

/// [I, R]: the queries of both heads; R rotates the plane by this many degrees.
inline matrix turned_queries(double degrees)
{
    const double angle = degrees * std::numbers::pi / 180, c = std::cos(angle), s = std::sin(angle);
    return rows(heads * width, {1, 0, 0, 0, c,  0, s, 0,  //
                                0, 1, 0, 0, 0,  1, 0, 0,  //
                                0, 0, 1, 0, -s, 0, c, 0,  //
                                0, 0, 0, 1, 0,  0, 0, 1});
}
/// [I, I]: keys or values of both heads.
inline matrix side_by_side() { return turned_queries(0); }
/// The mean of two adjacent contexts.
inline matrix mean_of_heads()
{
    auto W = blank(heads * width, width);
    for (std::size_t i = 0; i < width; ++i) W(i, i) = W(width + i, i) = 0.5;
    return W;
}
inline matrix unit()
{
    auto W = blank(width, width);
    for (std::size_t i = 0; i < width; ++i) W(i, i) = 1;
    return W;
}

/// A softmax that records its scores, for the page.
struct seen_softmax {
    static constexpr heed::normalizer_traits traits{.rowwise = true};

    std::shared_ptr<std::vector<std::vector<double>>> seen = std::make_shared<std::vector<std::vector<double>>>();

    auto operator()(const heed::tensor auto& scores, const auto& state, const auto& at) const
    {
        seen->emplace_back(scores.data(), scores.data() + scores.size());
        return heed::normalize::softmax{}(scores, state, at);
    }
    static auto parameters(auto& self, auto&&) { return seen_softmax{self.seen}; }
};

/// Converts consecutive [n][T] to [T][n].
inline std::vector<double> by_word(const double* from, std::size_t n, std::size_t positions)
{
    std::vector<double> to(n * positions);
    for (std::size_t h = 0; h < n; ++h) {
        for (std::size_t t = 0; t < positions; ++t) to[t * n + h] = from[h * positions + t];
    }
    return to;
}

/// As above for the first n rows.
inline std::vector<double> by_word(const std::vector<std::vector<double>>& rows, std::size_t n, std::size_t positions)
{
    std::vector<double> all;
    for (std::size_t h = 0; h < n; ++h) all.insert(all.end(), rows.at(h).begin(), rows.at(h).end());
    return by_word(all.data(), n, positions);
}

/// The steps of heads on a scene: step(memory, s, state) runs a step; scores() returns the scores of each head, [n][T].
template <class Heads, class Shown>
answers look_with(const Heads& attend, const scene& what, const auto& step, const auto& scores, const Shown& shown)
{
    answers all;
    const std::size_t T = what.words.size();
    const auto source = attend.on(annotations_of(what.words));
    auto state = attend.start(source);
    for (std::size_t s = 0; s < what.queries.size(); ++s) {
        auto seen = step(source, s, state);
        const auto weights = shown(seen.weights);  // [1,n,T]
        all.numbers = weights.size() / T;
        all.weights.push_back(by_word(weights.data(), all.numbers, T));
        all.scores.push_back(scores(all.numbers));
        all.contexts.push_back(list_of(seen.context));
        state = std::move(seen.state);
    }
    return all;
}

/// multi_head of both parts, joined in any way: what(heads) constructs it.
template <class Make, class Shown>
answers look_at_heads(const head_parts& of, const scene& what, const Make& make, const Shown& shown)
{
    using head_type = heed::attention<any_score<weight_kind::per_position>, any_normalizer<weight_kind::per_position>,
                                      heed::combine::weighted_sum>;
    std::vector<head_type> both;
    for (std::size_t h = 0; h < heads; ++h) both.push_back({of.score, of.normalizer(), {}});
    std::vector<std::shared_ptr<matrix>> seen;
    for (const auto& each : both) seen.push_back(each.normalize.seen);
    const auto attend = make(std::move(both));
    return look_with(
        attend, what,
        [&](const auto& source, std::size_t s, const auto& state) {
            return attend.compose(source, query_of(what.queries, s), state);
        },
        [&](std::size_t) {
            std::vector<double> all;
            for (const auto& each : seen) all.insert(all.end(), each->data(), each->data() + each->size());
            return by_word(all.data(), heads, what.words.size());
        },
        shown);
}

inline constexpr auto as_they_are = [](const auto& weights) { return weights; };

}  // namespace detail

/// f(description, ask, takes) for each way to join heads; takes: the required score and normalizer, if any.
template <class F>
void each_joining(const F& f)
{
    using namespace detail;
    using S = settings_of_policy;
    const knob turn{"turn of head 2", 90, -180, 180, 5};
    const std::vector<std::string> any, plain{"scaled_dot", "softmax"};
    f(
        description{"multi_head", "Two heads", "c = [c_1; c_2] W_O; head 2 uses a rotated query", "multi-head", {turn}},
        [](const head_parts& of, S k, const scene& what) {
            return look_at_heads(
                of, what,
                [&](auto both) {
                    return heed::multi_head{std::move(both), turned_queries(k[0]), side_by_side(), side_by_side(),
                                            mean_of_heads()};
                },
                as_they_are);
        },
        any);
    f(
        description{"gated_heads",
                    "Two heads with gates",
                    "c = ([c_1; c_2] ⊙ σ(s W)) W_O; one is open on the right, one on the left",
                    "head-gates",
                    {turn, {"W", 3, -8, 8, 0.5}}},
        [](const head_parts& of, S k, const scene& what) {
            const heed::per_head::gated gates{rows(heads, {k[1], -k[1], 0, 0, 0, 0, 0, 0})};
            return look_at_heads(
                of, what,
                [&](auto both) {
                    return heed::multi_head{std::move(both), turned_queries(k[0]), side_by_side(),
                                            side_by_side(),  mean_of_heads(),      gates};
                },
                as_they_are);
        },
        any);
    f(
        description{"differential",
                    "Difference of two heads",
                    "c = (1 − λ) norm((α_1 − λ α_2) V)",
                    "differential",
                    {turn, {"λ", 0.5, 0, 0.9, 0.05}}},
        [](const head_parts& of, S k, const scene& what) {
            const auto none = row({0, 0, 0, 0});
            const heed::per_head::differential pair{none, none, none, none, row({1, 1, 1, 1}), k[1]};
            return look_at_heads(
                of, what,
                [&](auto both) {
                    return heed::multi_head{
                        std::move(both), turned_queries(k[0]), side_by_side(), unit(), unit(), pair};
                },
                [&](const auto& weights) { return pair.weights(weights); });
        },
        any);
    f(
        description{
            "talking_heads",
            "Talking heads",
            "e'_g = Σ_h P_l e_h,  α'_v = Σ_g P_w α_g",
            "talking-heads",
            {turn, {"scores of the other head", 0.5, -2, 2, 0.1}, {"weights of the other head", 0, -1, 1, 0.1}}},
        [](const head_parts&, S k, const scene& what) {
            const seen_softmax normalize;
            const heed::attention head{heed::score::scaled_dot{}, normalize, heed::combine::weighted_sum{}};
            const heed::talking_heads attend{heed::multi_head{std::vector(heads, head), turned_queries(k[0]),
                                                              side_by_side(), side_by_side(), mean_of_heads()},
                                             rows(heads, {1, k[1], k[1], 1}), rows(heads, {1, k[2], k[2], 1})};
            return look_with(
                attend, what,
                [&](const auto& source, std::size_t s, const auto& state) {
                    normalize.seen->clear();
                    return attend.step(source, query_of(what.queries, s).state, state);
                },
                [&](std::size_t n) { return by_word(*normalize.seen, n, what.words.size()); }, as_they_are);
        },
        plain);
    f(
        description{"latent_heads",
                    "Two latent heads",
                    "c_j = (x, y) of the word; head 1 reads it, head 2 the distance",
                    "latent-heads",
                    {{"sharpness", 4, 0, 12, 0.5}, {"pull of the position", 8, 0, 20, 0.5}}},
        [](const head_parts&, S k, const scene& what) {
            const seen_softmax normalize;
            const auto W_Q = rows(2 * heads, {k[0], 0, 0, 0, 0, 0, 0, 0, 0, k[0], 0, 0, 0, 0, 0, 0});
            const auto W_QR = rows(2 * heads, {0, 0, 0, 0, 0, 0, k[1], 0, 0, 0, 0, 0, 0, 0, 0, 0});
            const auto W_DKV = rows(2, {1, 0, 0, 0, 0, 1, 0, 0}), W_KR = rows(2, {0, 0, 1, 0, 0, 0, 0, 0});
            const auto each_alike = rows(2, {1, 0, 0, 1, 1, 0, 0, 1});
            const auto W_O = rows(width, {0.5, 0, 0, 0, 0, 0, 0.5, 0, 0.5, 0, 0, 0, 0, 0, 0.5, 0});
            const heed::latent_heads attend{heads, W_Q, W_QR, W_DKV, W_KR, each_alike, each_alike, W_O, normalize};
            return look_with(
                attend, what,
                [&](const auto& source, std::size_t s, const auto& state) {
                    normalize.seen->clear();
                    return attend.compose(source, query_of(what.queries, s).state, state);
                },
                [&](std::size_t n) { return by_word(*normalize.seen, n, what.words.size()); }, as_they_are);
        },
        plain);
}

}  // namespace browser
