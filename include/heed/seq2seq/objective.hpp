// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/nn/dropout.hpp>
#include <heed/normalize/hard.hpp>
#include <heed/penalty/coverage.hpp>
#include <heed/penalty/doubly_stochastic.hpp>
#include <heed/penalty/guided_alignment.hpp>
#include <heed/penalty/monotone.hpp>
#include <heed/penalty/symmetry.hpp>
#include <heed/seq2seq/model.hpp>

/// Losses that depend on attention weights.
///
///     const auto loss = loss_with(model, batch, objective::coverage{0.1}, smoothing, drop);
///
/// Requires a model with `follow(batch, smoothing, drop, only)`, which returns a `teacher_forced`.
namespace heed::inline HEED_TARGET::seq2seq {

/// The cross-entropy of a batch plus objective(seen, batch) of the `teacher_forced`; arguments as for the model's
/// `loss`.
template <class T, class Objective>
auto loss_with(const auto& model, const training_batch<T>& batch, const Objective& objective, T smoothing = 0,
               const nn::dropout& drop = {}, const std::vector<std::uint32_t>* only = nullptr)
{
    const auto seen = model.follow(batch, smoothing, drop, only);
    return ops::add(seen.loss(), objective(seen, batch));
}

/// Objectives for loss_with. λ multiplies a sum over the batch; for a mean over words, divide λ by their number.
namespace objective {

/// λ Σ_i (1 − Σ_t α_ti)²: equal attention to every source word. Xu et al. 2015; see penalty::doubly_stochastic.
struct doubly_stochastic {
    double lambda = 1;

    auto operator()(const auto& seen, const auto& batch) const
    {
        return ops::scale(penalty::doubly_stochastic(seen.weights, batch.source.real, batch.target_lengths()), lambda);
    }
};

/// λ Σ_t Σ_i min(α_ti, Σ_{k<t} α_ki): no repeated attention. See et al. 2017; see penalty::coverage.
struct coverage {
    double lambda = 1;

    auto operator()(const auto& seen, const auto& batch) const
    {
        return ops::scale(penalty::coverage(seen.weights, batch.source.real, batch.target_lengths()), lambda);
    }
};

/// λ Σ_t max(0, m_{t−1} − m_t): attention from left to right. After Chorowski et al. 2014; see penalty::monotone.
struct monotone {
    double lambda = 1;

    auto operator()(const auto& seen, const auto& batch) const
    {
        return ops::scale(penalty::monotone(seen.weights, batch.source.real, batch.target_lengths()), lambda);
    }
};

/// −λ Σ_t Σ_i A_ti log α_ti: attention to given links. Chen et al. 2016; see penalty::guided_alignment.
struct guided_alignment {
    const std::vector<penalty::links>& links;  // one list for each sentence of the batch
    double lambda = 1;

    /// Refers to the links and does not accept temporaries.
    explicit guided_alignment(const std::vector<penalty::links>& of_batch, double factor = 1)
        : links(of_batch), lambda(factor)
    {}
    explicit guided_alignment(const std::vector<penalty::links>&&, double = 1) = delete;

    auto operator()(const auto& seen, const auto& batch) const
    {
        return ops::scale(penalty::guided_alignment(seen.weights, links, batch.source.real, batch.target_lengths()),
                          lambda);
    }
};

/// A moving average of the costs of sentences.
///
///     b_k = keep b_{k−1} + (1 − keep) mean cost of batch k          Xu et al. 2015, §4.1, keep = 0.9
///
/// heed's choice: the baseline of the first batch is its own mean.
struct moving_baseline {
    double keep = 0.9;
    double value = 0;
    bool begun = false;  // whether `add` was called

    /// Adds a batch.
    void add(double mean_cost)
    {
        value = begun ? keep * value + (1 - keep) * mean_cost : mean_cost;
        begun = true;
    }
};

/// Trains the scores of hard attention by the cost of the drawn positions, minus a baseline.
///
///     λ Σ_b (cost_b − baseline) Σ_t log p(s_t)              Xu et al. 2015, eq. 11 and 12; see normalize::hard
///
/// For normalize::hard with a new seed for each batch. The gradient treats the first factor as a constant. The call
/// also adds the batch to the baseline.
struct score_function {
    moving_baseline& baseline;
    double lambda = 1;

    auto operator()(const auto& seen, const auto&) const
    {
        using T = element_of<decltype(seen.costs)>;
        const auto costs = view_of(seen.costs);  // [S,B]
        const auto [S, B] = costs.shape;
        auto excess = filled<T, 1>({B}, T(0));
        double mean = 0;
        for (std::size_t i = 0; i < S * B; ++i) excess.data()[i % B] += costs.data[i];
        for (std::size_t b = 0; b < B; ++b) mean += static_cast<double>(excess(b)) / static_cast<double>(B);
        const double below = baseline.begun ? baseline.value : mean;
        for (std::size_t b = 0; b < B; ++b) excess(b) -= static_cast<T>(below);
        baseline.add(mean);
        return ops::scale(normalize::score_function_term(seen.state.normalize, excess), lambda);
    }
};

/// The sum of several objectives.
template <class... Objective>
struct sum {
    std::tuple<Objective...> of;

    explicit sum(Objective... each) : of(std::move(each)...) {}

    auto operator()(const auto& seen, const auto& batch) const
    {
        return std::apply([&](const auto&... each) { return add(each(seen, batch)...); }, of);
    }

private:
    static auto add(const tensor auto& only) { return only; }
    static auto add(const tensor auto& first, const tensor auto&... rest) { return ops::add(first, add(rest...)); }
};

}  // namespace objective

}  // namespace heed::inline HEED_TARGET::seq2seq
