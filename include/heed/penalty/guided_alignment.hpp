// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/ops/operation.hpp>
#include <heed/ops/shape.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y = −Σ A_ti log α_ti: weights α [S,B,T], reference alignment A [B,S,T] (constants) -> [].
///
///     ∂α_ti −= ∂y A_ti / max(α_ti, floor)
///
/// Below `floor` the logarithm continues as its tangent, log floor + (α - floor) / floor: the loss of a weight of 0 is
/// large, but finite.
struct guided_op : operation<guided_op> {
    static shape_of_rank<0> shape(const auto& weights, const auto& links, const lengths_view& source,
                                  const lengths_view& target, double)
    {
        const auto [S, B, positions] = weights.shape;
        source.require("penalty, source", B, positions);
        target.require("penalty, target", B, S);
        require_shape("guided_alignment", "the matrix of links", links.shape, {B, S, positions},
                      "[B,S,T]: a number for each target step and source position of each sentence");
        return {};
    }

    template <class T>
    static void forward(in<T, 3> weights, in<T, 3> links, const lengths_view& source, const lengths_view& target,
                        double floor, out<T, 0> loss)
    {
        const T least = static_cast<T>(floor);
        using std::log;
        T sum = 0;
        each_link(weights.shape, links, source, target, [&](std::size_t at, T link) {
            const T a = weights.data[at];
            sum -= link * (a >= least ? log(a) : log(least) + (a - least) / least);
        });
        *loss.data = sum;
    }

    template <class T>
    static void backward(in<T, 3> weights, in<T, 3> links, const lengths_view& source, const lengths_view& target,
                         double floor, in<T, 0>, in<T, 0> d_loss, adjoint<T, 3> d_weights, adjoint<T, 3>)
    {
        if (!d_weights) return;
        const T least = static_cast<T>(floor), d = *d_loss.data;
        each_link(weights.shape, links, source, target,
                  [&](std::size_t at, T link) { d_weights.data[at] -= d * link / std::max(weights.data[at], least); });
    }

private:
    /// Calls f(index in the weights, link) for each nonzero link within the lengths.
    template <class T, class F>
    static void each_link(const shape_of_rank<3>& weights, in<T, 3> links, const lengths_view& source,
                          const lengths_view& target, F&& f)
    {
        const auto [S, B, positions] = weights;
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t t = 0; t < target[b]; ++t) {
                for (std::size_t i = 0; i < source[b]; ++i) {
                    const T link = links.data[(b * S + t) * positions + i];
                    if (link != T(0)) f((t * B + b) * positions + i, link);
                }
            }
        }
    }
};
inline constexpr guided_op guided{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::penalty {

/// Word links (i, j) of one sentence pair: source position i and target step j, both from 0; see metrics::links.
using links = std::vector<std::pair<int, int>>;

/// The links of each sentence as a matrix A [B,S,T]: each link of a target step with n links is 1/n; a step without
/// links has zeros. Duplicate links count once. Throws shape_error for a link outside the matrix.
template <class T>
array<T, 3> link_matrix(const std::vector<links>& of_sentences, std::size_t steps, std::size_t positions)
{
    auto matrix = filled<T, 3>({of_sentences.size(), steps, positions}, T(0));
    for (std::size_t b = 0; b < of_sentences.size(); ++b) {
        for (const auto& [i, j] : of_sentences[b]) {
            if (i < 0 || j < 0 || std::cmp_greater_equal(i, positions) || std::cmp_greater_equal(j, steps)) {
                throw shape_error("guided_alignment: the link " + std::to_string(i) + "-" + std::to_string(j) +
                                  " of row " + std::to_string(b) + " is outside the " +
                                  counted(positions, "source position") + " and " + counted(steps, "target step"));
            }
            matrix(b, static_cast<std::size_t>(j), static_cast<std::size_t>(i)) = T(1);
        }
        for (std::size_t s = 0; s < steps; ++s) {
            T count = 0;
            for (std::size_t t = 0; t < positions; ++t) count += matrix(b, s, t);
            for (std::size_t t = 0; t < positions; ++t) matrix(b, s, t) /= std::max(count, T(1));
        }
    }
    return matrix;
}

/// Encourages weights that agree with the links of a word aligner or a human annotator: their cross-entropy.
///
///     loss = -Σ_t Σ_i A_ti log α_ti            Chen et al. 2016, "Guided alignment training"
///
/// weights: [B,T] of each step, plain or taped. A [B,S,T]: any numbers >= 0, hard or soft; link_matrix makes rows with
/// sum 1. Target steps without links and padding contribute nothing. The loss is summed over the batch and not scaled;
/// use `ops::scale` for the paper's mean over target words, and for its weight in the whole cost.
///
/// Deviation: below `floor` the logarithm continues as its tangent, so that a weight of exactly 0 (a window, sparsemax)
/// has a finite loss and a gradient of at most A/floor (docs/explanation/decisions.md). Throws heed::error unless
/// `floor` is above 0.
template <tensor Weights>
auto guided_alignment(const std::vector<Weights>& weights, const array<element_of<Weights>, 3>& link_weights,
                      const lengths& source, const lengths& target, double floor = 1e-6)
{
    if (!(floor > 0)) throw error("guided_alignment: floor is " + std::to_string(floor) + " but must be above 0");
    return ops::guided(ops::stack(weights), link_weights, source, target, floor);
}

/// As above, if every step is real in every row.
template <tensor Weights>
auto guided_alignment(const std::vector<Weights>& weights, const array<element_of<Weights>, 3>& link_weights,
                      const lengths& source, double floor = 1e-6)
{
    return penalty::guided_alignment(weights, link_weights, source, lengths::full(source.batch(), weights.size()),
                                     floor);
}

/// As above, with lists of links, one list per sentence; `target` and `floor` are optional.
template <tensor Weights>
auto guided_alignment(const std::vector<Weights>& weights, const std::vector<links>& of_sentences,
                      const lengths& source, const auto&... target_and_floor)
{
    const std::size_t positions = weights.empty() ? 0 : shape_of(weights.front())[1];
    return penalty::guided_alignment(weights,
                                     penalty::link_matrix<element_of<Weights>>(of_sentences, weights.size(), positions),
                                     source, target_and_floor...);
}

}  // namespace heed::inline HEED_TARGET::penalty
