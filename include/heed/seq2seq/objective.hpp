// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/nn/dropout.hpp>
#include <heed/normalize/hard.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/losses.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/sums.hpp>
#include <heed/penalty/coverage.hpp>
#include <heed/penalty/doubly_stochastic.hpp>
#include <heed/penalty/guided_alignment.hpp>
#include <heed/penalty/monotone.hpp>
#include <heed/penalty/symmetry.hpp>
#include <heed/seq2seq/candidates.hpp>
#include <heed/seq2seq/model.hpp>

/// Losses that ask for attention weights.
///
///     const auto loss = loss_with(model, batch, objective::coverage{0.1}, smoothing, drop);
///
/// A model takes part by `follow(batch, smoothing, drop, only)`, which returns a `followed`.
namespace heed::seq2seq {

/// A batch that a model was led through with the true previous words: what it cost, and what its attention did.
template <class Costs, class Weights, class State>
struct followed {
    Costs costs;                   // [S,B] of each word: its weight in the batch times −log p; 0 in the padding
    std::vector<Weights> weights;  // [B,T] of each step; averaged over dimensions or heads
    State state;                   // of the attention, after the last step

    /// The cross-entropy: Σ −log p, as the model's `loss` has it.
    auto loss() const { return ops::sum_last(ops::sum_last(costs)); }
};
template <class Costs, class Weights, class State>
followed(Costs, std::vector<Weights>, State) -> followed<Costs, Weights, State>;

/// The cross-entropy of a batch and what an objective adds to it. The arguments are those of the model's `loss`;
/// objective(seen, batch) gets the `followed` and returns one number.
template <class T, class Objective>
auto loss_with(const auto& model, const training_batch<T>& batch, const Objective& objective, T smoothing = 0,
               const nn::dropout& drop = {}, const std::vector<std::uint32_t>* only = nullptr)
{
    const auto seen = model.follow(batch, smoothing, drop, only);
    return ops::add(seen.loss(), objective(seen, batch));
}

namespace detail {

/// The cross-entropy of each word [S,B]; see cross_entropy in model.hpp.
template <class T>
auto cross_entropy_each(const tensor auto& readout, const auto& output, const ops::expected_words<T>& expected,
                        T smoothing, const std::vector<std::uint32_t>* only)
{
    const auto smooth = static_cast<double>(smoothing);
    if (only == nullptr) { return ops::cross_entropy_each(ops::linear(readout, output.W, output.b), expected, smooth); }
    const ops::expected_words<T> among{places_in<T>(*only, expected.words, expected.weights), expected.weights};
    const auto scores = ops::linear(readout, ops::columns_of(output.W, *only), ops::columns_of(output.b, *only));
    return ops::cross_entropy_each(scores, among, smooth);
}

}  // namespace detail

/// Objectives for loss_with. λ multiplies a sum over the batch, as the model's loss is one: where the loss is a mean
/// over words, divide λ by their number, too.
namespace objective {

namespace detail {

/// λ times a penalty on the weights.
auto penalised(double lambda, const auto& penalty, const auto& seen, const auto& batch)
{
    return ops::scale(penalty(seen.weights, batch.source.real, batch.target_lengths()), lambda);
}

}  // namespace detail

/// λ Σ_i (1 − Σ_t α_ti)²: every source word as much as any other. Xu et al. 2015; see penalty::doubly_stochastic.
struct doubly_stochastic {
    double lambda = 1;

    auto operator()(const auto& seen, const auto& batch) const
    {
        return detail::penalised(
            lambda, [](const auto&... x) { return penalty::doubly_stochastic(x...); }, seen, batch);
    }
};

/// λ Σ_t Σ_i min(α_ti, Σ_{k<t} α_ki): not again where it was before. See et al. 2017; see penalty::coverage.
struct coverage {
    double lambda = 1;

    auto operator()(const auto& seen, const auto& batch) const
    {
        return detail::penalised(
            lambda, [](const auto&... x) { return penalty::coverage(x...); }, seen, batch);
    }
};

/// λ Σ_t max(0, m_{t−1} − m_t): from left to right. After Chorowski et al. 2014; see penalty::monotone.
struct monotone {
    double lambda = 1;

    auto operator()(const auto& seen, const auto& batch) const
    {
        return detail::penalised(
            lambda, [](const auto&... x) { return penalty::monotone(x...); }, seen, batch);
    }
};

/// −λ Σ_t Σ_i A_ti log α_ti: where these links of the batch's sentences are. Chen et al. 2016; see
/// penalty::guided_alignment.
struct guided_alignment {
    const std::vector<penalty::links>& links;  // one list for each sentence of the batch
    double lambda = 1;

    /// It refers to the links, and takes no temporary.
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
/// Ours: the first batch has its own mean for a baseline.
class moving_baseline {
public:
    explicit moving_baseline(double keep = 0.9) : keep_(keep) {}

    double value() const { return value_; }
    bool begun() const { return begun_; }  // has there been a batch?

    /// Counts one batch more.
    void add(double mean_cost)
    {
        value_ = begun_ ? keep_ * value_ + (1 - keep_) * mean_cost : mean_cost;
        begun_ = true;
    }

private:
    double keep_, value_ = 0;
    bool begun_ = false;
};

/// Hard attention's scores learn from the cost of what was drawn, less a baseline.
///
///     λ Σ_b (cost_b − baseline) Σ_t log p(s_t)              Xu et al. 2015, eq. 11 and 12; see normalize::hard
///
/// For an attention with normalize::hard. The first factor is a constant to the gradient; the baseline takes the batch
/// in afterwards, and must outlive the objective. Use a new seed of the normalizer for each batch.
struct score_function {
    moving_baseline& baseline;
    double lambda = 1;

    auto operator()(const auto& seen, const auto& batch) const
    {
        using T = element_of<decltype(seen.costs)>;
        const auto costs = view_of(seen.costs);  // [S,B]
        const auto [S, B] = costs.shape;
        auto excess = filled<T, 1>({B}, T(0));
        double mean = 0;
        for (std::size_t i = 0; i < S * B; ++i) excess.data()[i % B] += costs.data[i];
        for (std::size_t b = 0; b < B; ++b) mean += static_cast<double>(excess(b)) / static_cast<double>(B);
        const double below = baseline.begun() ? baseline.value() : mean;
        for (std::size_t b = 0; b < B; ++b) excess(b) -= static_cast<T>(below);
        baseline.add(mean);
        (void)batch;
        return ops::scale(normalize::score_function_term(seen.state.normalize, excess), lambda);
    }
};

/// Several objectives, added.
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

}  // namespace heed::seq2seq
