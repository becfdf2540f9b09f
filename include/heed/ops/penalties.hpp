// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>

/// Losses on the weights of all steps of a batch: α [S,B,T] -> a scalar, summed over the sentences. Weights beyond a
/// source's or a target's length are ignored and get no gradient.
namespace heed::inline HEED_TARGET::ops {

/// The weights of one sentence: α[t,i] for step t < steps and position i < positions.
template <class T>
struct weight_path {
    const T* weights;
    std::size_t stride;  // between steps
    std::size_t steps, positions;

    const T* operator[](std::size_t t) const { return weights + t * stride; }

    /// f(t, i), step by step.
    void each(const auto f) const
    {
        for (std::size_t t = 0, end = steps; t < end; ++t) {
            for (std::size_t i = 0, n = positions; i < n; ++i) f(t, i);
        }
    }
};

/// Each rule defines its value and its derivative. Both get scratch memory of the size that the rule `needs`, filled by
/// `prepare`.
namespace rules {

/// Σ_i (1 - Σ_t α_ti)²
struct doubly_stochastic {
    static std::size_t needs(std::size_t, std::size_t positions) { return positions; }

    template <class T>
    static void prepare(const weight_path<T>& a, T* sums)
    {
        std::fill_n(sums, a.positions, T(0));
        kernels::add_in_blocks(a.steps, a.positions, sums, [&](std::size_t first, std::size_t last, T* to) {
            for (std::size_t t = first; t < last; ++t) kernels::add(a.positions, to, a[t]);
        });
    }

    template <class T>
    static T value(const weight_path<T>& a, const T* sums)
    {
        in_double<T> loss = 0;
        for (std::size_t i = 0; i < a.positions; ++i) loss += static_cast<in_double<T>>((1 - sums[i]) * (1 - sums[i]));
        return static_cast<T>(loss);
    }

    template <class T>
    static void back(const weight_path<T>& a, const T* sums, T dy, T* d_a)
    {
        for (std::size_t t = 0; t < a.steps; ++t) {
            T* const d = d_a + t * a.stride;
            for (std::size_t i = 0; i < a.positions; ++i) d[i] -= 2 * dy * (1 - sums[i]);
        }
    }
};

/// Σ_t Σ_i min(α_ti, c_ti), c_ti = Σ_{k<t} α_ki. In case of a tie the gradient goes to c.
struct coverage {
    static std::size_t needs(std::size_t steps, std::size_t positions) { return (steps + 1) * positions; }

    template <class T>
    static void prepare(const weight_path<T>& a, T* covered)
    {
        std::fill_n(covered, a.positions, T(0));
        a.each([=](std::size_t t, std::size_t i) {
            covered[(t + 1) * a.positions + i] = covered[t * a.positions + i] + a[t][i];
        });
    }

    template <class T>
    static T value(const weight_path<T>& a, const T* covered)
    {
        in_double<T> loss = 0;
        a.each([&](std::size_t t, std::size_t i) {
            loss += static_cast<in_double<T>>(std::min(a[t][i], covered[t * a.positions + i]));
        });
        return static_cast<T>(loss);
    }

    template <class T>
    static void back(const weight_path<T>& a, T* covered, T dy, T* d_a)
    {
        T* by_coverage = covered + a.steps * a.positions;  // for the steps after t
        std::fill_n(by_coverage, a.positions, T(0));
        for (std::size_t t = a.steps; t-- > 0;) {
            for (std::size_t i = 0; i < a.positions; ++i) {
                const bool less = a[t][i] < covered[t * a.positions + i];
                d_a[t * a.stride + i] += by_coverage[i] + (less ? dy : T(0));
                by_coverage[i] += less ? T(0) : dy;
            }
        }
    }
};

/// Σ_{t>0} max(0, m_{t-1} - m_t), m_t = Σ_i i α_ti
struct monotone {
    static std::size_t needs(std::size_t steps, std::size_t) { return steps; }

    template <class T>
    static void prepare(const weight_path<T>& a, T* mean)
    {
        for (std::size_t t = 0; t < a.steps; ++t) {
            in_double<T> sum = 0;
            for (std::size_t i = 0; i < a.positions; ++i)
                sum += static_cast<in_double<T>>(static_cast<T>(i)) * static_cast<in_double<T>>(a[t][i]);
            mean[t] = static_cast<T>(sum);
        }
    }

    template <class T>
    static T value(const weight_path<T>& a, const T* mean)
    {
        in_double<T> loss = 0;
        for (std::size_t t = 1; t < a.steps; ++t)
            loss += static_cast<in_double<T>>(std::max(T(0), mean[t - 1] - mean[t]));
        return static_cast<T>(loss);
    }

    template <class T>
    static void back(const weight_path<T>& a, const T* mean, T dy, T* d_a)
    {
        for (std::size_t t = 1; t < a.steps; ++t) {
            if (!(mean[t - 1] > mean[t])) continue;
            for (std::size_t i = 0; i < a.positions; ++i) {
                d_a[(t - 1) * a.stride + i] += dy * static_cast<T>(i);
                d_a[t * a.stride + i] -= dy * static_cast<T>(i);
            }
        }
    }
};

}  // namespace rules

/// Σ_b rule(α of sentence b): weights α [S,B,T], the sources' and the targets' lengths -> [].      ∂α as in the rule
template <class Rule>
struct penalty_op : operation<penalty_op<Rule>> {
    static shape_of_rank<0> shape(const auto& weights, const lengths_view& source, const lengths_view& target)
    {
        source.require("penalty, source", weights.shape[1], weights.shape[2]);
        target.require("penalty, target", weights.shape[1], weights.shape[0]);
        return {};
    }

    template <class T>
    static void forward(in<T, 3> weights, const lengths_view& source, const lengths_view& target, out<T, 0> loss)
    {
        T sum = 0;
        each_sentence(weights, source, target,
                      [&](std::size_t, const weight_path<T>& path, T* memory) { sum += Rule::value(path, memory); });
        *loss.data = sum;
    }

    template <class T>
    static void backward(in<T, 3> weights, const lengths_view& source, const lengths_view& target, in<T, 0>,
                         in<T, 0> d_loss, adjoint<T, 3> d_weights)
    {
        each_sentence(weights, source, target, [=](std::size_t at, const weight_path<T>& path, T* memory) {
            Rule::back(path, memory, *d_loss.data, d_weights.data + at);
        });
    }

private:
    /// f(offset of its first weight, its weights, memory prepared by the rule) for each sentence.
    template <class T>
    static void each_sentence(in<T, 3> weights, const lengths_view& source, const lengths_view& target, const auto& f)
    {
        const auto [S, B, positions] = weights.shape;
        scratch here;
        T* const memory = here.take<T>(Rule::needs(S, positions));
        for (std::size_t b = 0; b < B; ++b) {
            const weight_path<T> path{weights.data + b * positions, B * positions, target[b], source[b]};
            Rule::prepare(path, memory);
            f(b * positions, path, memory);
        }
    }
};
/// y = Σ_b Σ_i (1 − Σ_t α[t,b,i])²: weights α [S,B,T], the sources' and the targets' lengths -> [].
///
///     ∂α[t,b,i] −= 2 (1 − Σ_k α[k,b,i]) ∂y
inline constexpr penalty_op<rules::doubly_stochastic> doubly_stochastic_penalty{};
/// y = Σ_b Σ_t Σ_i min(α[t,b,i], c[t,b,i]), c[t] = Σ_{k<t} α[k]: weights α [S,B,T], the sources' and the targets'
/// lengths -> [].
///
///     ∂α[t,b,i] += ∂y where α < c, and ∂y once for each later step k with c[k,b,i] ≤ α[k,b,i]
inline constexpr penalty_op<rules::coverage> coverage_penalty{};
/// y = Σ_b Σ_{t>0} max(0, m[t−1,b] − m[t,b]), m[t,b] = Σ_i i α[t,b,i]: weights α [S,B,T], the sources' and the targets'
/// lengths -> [].
///
///     where m[t−1,b] > m[t,b]:  ∂α[t−1,b,i] += i ∂y,  ∂α[t,b,i] −= i ∂y
inline constexpr penalty_op<rules::monotone> monotone_penalty{};

}  // namespace heed::inline HEED_TARGET::ops
