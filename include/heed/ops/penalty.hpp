// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <heed/core/mask.hpp>
#include <heed/ops/operation.hpp>

/// Losses on the weights of all steps of a batch: α [S,B,T] -> one number, summed over the sentences. What lies behind
/// a source's or a target's length takes no part, and gets no gradient.
namespace heed::ops {

/// The weights of one sentence: α[t,i] for step t < steps and position i < positions.
template <class T>
struct weight_path {
    const T* weights;
    std::size_t stride;  // from a step to the next
    std::size_t steps, positions;

    const T* operator[](std::size_t t) const { return weights + t * stride; }
};

/// Each rule states its value and how to go back. `scratch` numbers of memory are lent to both.
namespace rules {

/// Σ_i (1 - Σ_t α_ti)²
struct doubly_stochastic {
    static std::size_t scratch(std::size_t, std::size_t positions) { return positions; }

    template <class T>
    static T value(const weight_path<T>& a, T* sums)
    {
        sum_steps(a, sums);
        T loss = 0;
        for (std::size_t i = 0; i < a.positions; ++i) loss += (1 - sums[i]) * (1 - sums[i]);
        return loss;
    }

    template <class T>
    static void back(const weight_path<T>& a, T* sums, T dy, T* d_a)
    {
        sum_steps(a, sums);
        for (std::size_t t = 0; t < a.steps; ++t) {
            for (std::size_t i = 0; i < a.positions; ++i) d_a[t * a.stride + i] -= 2 * dy * (1 - sums[i]);
        }
    }

private:
    template <class T>
    static void sum_steps(const weight_path<T>& a, T* sums)
    {
        std::fill_n(sums, a.positions, T(0));
        for (std::size_t t = 0; t < a.steps; ++t) {
            for (std::size_t i = 0; i < a.positions; ++i) sums[i] += a[t][i];
        }
    }
};

/// Σ_t Σ_i min(α_ti, c_ti), c_ti = Σ_{k<t} α_ki. Where both are the same the gradient goes to c.
struct coverage {
    static std::size_t scratch(std::size_t steps, std::size_t positions) { return (steps + 1) * positions; }

    template <class T>
    static T value(const weight_path<T>& a, T* covered)
    {
        T loss = 0;
        cover(a, covered);
        for (std::size_t t = 0; t < a.steps; ++t) {
            for (std::size_t i = 0; i < a.positions; ++i) loss += std::min(a[t][i], covered[t * a.positions + i]);
        }
        return loss;
    }

    template <class T>
    static void back(const weight_path<T>& a, T* covered, T dy, T* d_a)
    {
        cover(a, covered);
        T* by_coverage = covered + a.steps * a.positions;  // of the steps behind
        std::fill_n(by_coverage, a.positions, T(0));
        for (std::size_t t = a.steps; t-- > 0;) {
            for (std::size_t i = 0; i < a.positions; ++i) {
                const bool less = a[t][i] < covered[t * a.positions + i];
                d_a[t * a.stride + i] += by_coverage[i] + (less ? dy : T(0));
                by_coverage[i] += less ? T(0) : dy;
            }
        }
    }

private:
    template <class T>
    static void cover(const weight_path<T>& a, T* covered)
    {
        if (a.steps > 0) std::fill_n(covered, a.positions, T(0));
        for (std::size_t t = 0; t + 1 < a.steps; ++t) {
            T* now = covered + t * a.positions;
            for (std::size_t i = 0; i < a.positions; ++i) now[a.positions + i] = now[i] + a[t][i];
        }
    }
};

/// Σ_{t>0} max(0, m_{t-1} - m_t), m_t = Σ_i i α_ti
struct monotone {
    static std::size_t scratch(std::size_t steps, std::size_t) { return steps; }

    template <class T>
    static T value(const weight_path<T>& a, T* mean)
    {
        T loss = 0;
        means(a, mean);
        for (std::size_t t = 1; t < a.steps; ++t) loss += std::max(T(0), mean[t - 1] - mean[t]);
        return loss;
    }

    template <class T>
    static void back(const weight_path<T>& a, T* mean, T dy, T* d_a)
    {
        means(a, mean);
        for (std::size_t t = 1; t < a.steps; ++t) {
            if (!(mean[t - 1] > mean[t])) continue;
            for (std::size_t i = 0; i < a.positions; ++i) {
                d_a[(t - 1) * a.stride + i] += dy * static_cast<T>(i);
                d_a[t * a.stride + i] -= dy * static_cast<T>(i);
            }
        }
    }

private:
    template <class T>
    static void means(const weight_path<T>& a, T* mean)
    {
        for (std::size_t t = 0; t < a.steps; ++t) {
            mean[t] = 0;
            for (std::size_t i = 0; i < a.positions; ++i) mean[t] += static_cast<T>(i) * a[t][i];
        }
    }
};

}  // namespace rules

/// A rule applied to every sentence: weights [S,B,T], the sources' and the targets' lengths -> [].
template <class Rule>
struct penalty_op : operation<penalty_op<Rule>> {
    static void check(const shape_of_rank<3>& weights, const lengths& source, const lengths& target)
    {
        source.require("penalty, source", weights[1], weights[2]);
        target.require("penalty, target", weights[1], weights[0]);
    }

    /// The weights of sentence b.
    template <class T>
    static weight_path<T> path(const shape_of_rank<3>& shape, const T* weights, std::size_t b,
                               const std::size_t* source, const std::size_t* target)
    {
        return {weights + b * shape[2], shape[1] * shape[2], target[b], source[b]};
    }

    template <class T>
    static T compute(const shape_of_rank<3>& shape, const T* weights, const std::size_t* source,
                     const std::size_t* target, T* scratch)
    {
        T loss = 0;
        for (std::size_t b = 0; b < shape[1]; ++b) {
            loss += Rule::value(path(shape, weights, b, source, target), scratch);
        }
        return loss;
    }

    template <plain_tensor W>
    auto plain(const W& weights, const lengths& source, const lengths& target) const
    {
        using T = element_of<W>;
        const shape_of_rank<3> shape = shape_of(weights);
        check(shape, source, target);
        std::vector<T> scratch(Rule::scratch(shape[0], shape[2]));
        return filled<T, 0>({}, compute<T>(shape, view_of(weights).data, source.data(), target.data(), scratch.data()));
    }
};
inline constexpr penalty_op<rules::doubly_stochastic> doubly_stochastic_penalty{};
inline constexpr penalty_op<rules::coverage> coverage_penalty{};
inline constexpr penalty_op<rules::monotone> monotone_penalty{};

/// -Σ A_ti log α_ti: weights [S,B,T], what they should be [B,S,T] (constants) -> []. Below `floor` the logarithm goes
/// on as its tangent, log floor + (α - floor) / floor: a weight of 0 costs much, but not infinitely much.
struct guided_op : operation<guided_op> {
    static void check(const shape_of_rank<3>& weights, const shape_of_rank<3>& links, const lengths& source,
                      const lengths& target)
    {
        penalty_op<rules::monotone>::check(weights, source, target);
        require_shape("guided_alignment", "the matrix of links", links, {weights[1], weights[0], weights[2]},
                      "[B,S,T]: a number for each target step and source position of each sentence");
    }

    /// take(offset in the weights, link) for each link that is not 0 and lies within the lengths.
    template <class T, class Take>
    static void each_link(const shape_of_rank<3>& shape, const T* links, const std::size_t* source,
                          const std::size_t* target, Take&& take)
    {
        const auto [S, B, T_] = shape;
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t t = 0; t < target[b]; ++t) {
                for (std::size_t i = 0; i < source[b]; ++i) {
                    const T link = links[(b * S + t) * T_ + i];
                    if (link != T(0)) take((t * B + b) * T_ + i, link);
                }
            }
        }
    }

    template <class T>
    static T compute(const shape_of_rank<3>& shape, const T* weights, const T* links, const std::size_t* source,
                     const std::size_t* target, T floor)
    {
        T loss = 0;
        each_link(shape, links, source, target, [&](std::size_t at, T link) {
            const T a = weights[at];
            loss -= link * (a >= floor ? std::log(a) : std::log(floor) + (a - floor) / floor);
        });
        return loss;
    }

    template <plain_tensor W, plain_tensor L>
    auto plain(const W& weights, const L& links, const lengths& source, const lengths& target, double floor) const
    {
        using T = element_of<W>;
        check(shape_of(weights), shape_of(links), source, target);
        return filled<T, 0>({}, compute<T>(shape_of(weights), view_of(weights).data, view_of(links).data, source.data(),
                                           target.data(), static_cast<T>(floor)));
    }
};
inline constexpr guided_op guided{};

}  // namespace heed::ops
