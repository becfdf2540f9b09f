// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/attention/execute/tiled.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/plan.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/family.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/carried_sums.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/linear_attention.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/parts.hpp>

/// Many queries in linear time, where weights are inner products but for a factor: the sum over keys comes first.
///
///     Σ_j (q · k_j) v_j = q · Σ_j k_j v_jᵀ             Katharopoulos et al. 2020, eq. 5-6
namespace heed::detail::execute {

/// Contexts [B,S,D] of projected queries [B,S,F].
template <class Score, class Mask>
auto linear(const Score& score, const auto& normalize, const auto& memory, const auto& projected, std::size_t first,
            const Mask& mask)
{
    const auto asked = asking_all(summed(score), projected, memory, first);  // [B,S,F]
    if constexpr (fades<Score>) {
        return ops::gated_linear_attention(asked, memory.keys, memory.values, memory.real, first,
                                           normalize.by_sums().divides);
    } else {
        return ops::linear_attention(asked, memory.keys, memory.values,
                                     visible_lengths(mask, memory.real, memory.positions()),
                                     std::is_same_v<Mask, causal>, normalize.by_sums());
    }
}

}  // namespace heed::detail::execute

namespace heed::ops {

/// S'_b = γ^n S_b + Σ_j γ^{n−1−j} k_j [v_j, 1]ᵀ over the n real positions of row b: sums [B,F,D+1], keys [B,T,F],
/// values [B,T,D] -> [B,F,D+1].
///
///     ∂S_b += γ^n ∂S'_b,  ∂k_j += γ^{n−1−j} ∂S'_b [v_j, 1],  ∂v_j += γ^{n−1−j} (∂S'_bᵀ k_j without its last number)
struct add_to_sums_op : operation<add_to_sums_op> {
    static shape_of_rank<3> shape(const auto& sums, const auto& keys, const auto& values, const lengths_view& real,
                                  double)
    {
        const auto k = keys.shape, v = values.shape;
        require_shape("add_to_sums", "the values", v, {k[0], k[1], v[2]}, "one for each key of ", k);
        require_shape("add_to_sums", "the sums", sums.shape, {k[0], k[2], v[2] + 1},
                      "[rows, features, width of values + 1]");
        real.require("add_to_sums", k[0], k[1]);
        return sums.shape;
    }

    template <class T>
    static void forward(in<T, 3> sums, in<T, 3> keys, in<T, 3> values, const lengths_view& real, double decay,
                        out<T, 3> y)
    {
        const std::size_t P = keys.shape[1], F = keys.shape[2], D = values.shape[2], size = F * (D + 1);
        for (std::size_t b = 0; b < sums.shape[0]; ++b) {
            const std::size_t n = real[b];
            T* const to = y.data + b * size;
            simd::transform(
                size, to, [before = aged<T>(decay, n)](auto s) { return before * s; }, sums.data + b * size);
            kernels::add_in_blocks(n, size, to, [&](std::size_t begin, std::size_t end, T* into) {
                for (std::size_t j = begin; j < end; ++j) {
                    const T by = aged<T>(decay, n - 1 - j), *const value = values.data + (b * P + j) * D;
                    for (std::size_t f = 0; f < F; ++f) {
                        T* const row = into + f * (D + 1);
                        const T factor = by * keys.data[(b * P + j) * F + f];
                        kernels::add_scaled(D, row, factor, value);
                        row[D] += factor;
                    }
                }
            });
        }
    }

    template <class T>
    static void backward(in<T, 3> sums, in<T, 3> keys, in<T, 3> values, const lengths_view& real, double decay,
                         in<T, 3>, in<T, 3> d_y, adjoint<T, 3> d_sums, adjoint<T, 3> d_keys, adjoint<T, 3> d_values)
    {
        const std::size_t P = keys.shape[1], F = keys.shape[2], D = values.shape[2], size = F * (D + 1);
        for (std::size_t b = 0; b < sums.shape[0]; ++b) {
            const std::size_t n = real[b];
            const T* const d = d_y.data + b * size;
            if (d_sums) kernels::add_scaled(size, d_sums.data + b * size, aged<T>(decay, n), d);
            for (std::size_t j = 0; j < n; ++j) {
                const std::size_t at = b * P + j;
                const T by = aged<T>(decay, n - 1 - j);
                for (std::size_t f = 0; f < F; ++f) {
                    const T* const row = d + f * (D + 1);
                    if (d_keys) d_keys.data[at * F + f] += by * (kernels::dot(D, row, values.data + at * D) + row[D]);
                    if (d_values) kernels::add_scaled(D, d_values.data + at * D, by * keys.data[at * F + f], row);
                }
            }
        }
    }

private:
    /// γ^age.
    template <class T>
    static T aged(double decay, std::size_t age)
    {
        return static_cast<T>(decay == 1 ? 1 : std::pow(decay, static_cast<double>(age)));
    }
};
inline constexpr add_to_sums_op add_to_sums{};

/// c_b = q_bᵀ S_b, without its last number, by which it is divided if `divides`: queries [B,F], sums [B,F,D+1] ->
/// [B,D]. 0 where that number is 0.
///
///     u = ∂c_b / z and −∂c_b · c_b / z for the last:   ∂q_b += S_b u,  ∂S_b += q_b uᵀ
struct read_sums_op : operation<read_sums_op> {
    static shape_of_rank<2> shape(const auto& queries, const auto& sums, bool)
    {
        const auto s = sums.shape;
        require_shape("read_sums", "the query", queries.shape, {s[0], s[1]}, "one feature for each row of the sums ",
                      s);
        return {s[0], s[2] - 1};
    }
    static std::size_t saved(const auto&, const auto& sums, bool) { return sums.shape[0]; }

    template <class T>
    static void forward(in<T, 2> queries, in<T, 3> sums, bool divides, out<T, 2> contexts, T* divisors)
    {
        const std::size_t F = sums.shape[1], D = sums.shape[2] - 1;
        for (std::size_t b = 0; b < sums.shape[0]; ++b) {
            T* const c = contexts.data + b * D;
            std::fill_n(c, D, T(0));
            T by = 0;
            for (std::size_t f = 0; f < F; ++f) {
                const T q = queries.data[b * F + f];
                const T* const row = sums.data + (b * F + f) * (D + 1);
                kernels::add_scaled(D, c, q, row);
                by += q * row[D];
            }
            divisors[b] = !divides ? T(1) : by == 0 ? T(0) : 1 / by;
            for (std::size_t i = 0; i < D; ++i) c[i] *= divisors[b];
        }
    }

    template <class T>
    static void backward(in<T, 2> queries, in<T, 3> sums, bool divides, in<T, 2> contexts, in<T, 2> d_contexts,
                         const T* divisors, adjoint<T, 2> d_queries, adjoint<T, 3> d_sums)
    {
        const std::size_t F = sums.shape[1], D = sums.shape[2] - 1;
        for (std::size_t b = 0; b < sums.shape[0]; ++b) {
            const T *const d = d_contexts.data + b * D, by = divisors[b];
            const T last = divides ? -kernels::dot(D, d, contexts.data + b * D) * by : T(0);
            for (std::size_t f = 0; f < F; ++f) {
                const std::size_t at = b * F + f;
                const T* const row = sums.data + at * (D + 1);
                if (d_queries) d_queries.data[at] += by * kernels::dot(D, d, row) + last * row[D];
                if (!d_sums) continue;
                T* const d_row = d_sums.data + at * (D + 1);
                kernels::add_scaled(D, d_row, by * queries.data[at], d);
                d_row[D] += last * queries.data[at];
            }
        }
    }
};
inline constexpr read_sums_op read_sums{};

}  // namespace heed::ops

namespace heed {

/// All that linear attention remembers of its keys: Σ_j γ^age k_j [v_j, 1]ᵀ.
template <class Sums>
struct sums_of_keys {
    Sums of;  // [B,F,D+1]

    /// As a beam selects hypotheses.
    auto map(auto&& f, const auto&... others) const
    {
        auto next = f(of, others.of...);
        return sums_of_keys<decltype(next)>{std::move(next)};
    }
};

template <class Sums>
sums_of_keys(Sums) -> sums_of_keys<Sums>;

/// Linear attention that generates: it remembers one matrix for each sentence, and each word costs the same.
///
///     S_t = γ S_{t−1} + k_t v_tᵀ,  c_t = q_tᵀ S_t / z_t        Katharopoulos et al. 2020, eq. 16-20; Sun et al. 2023,
///     eq. 6; with a_t in place of γ, score::fading, Yang et al. 2024, section 4.1
///
///     streaming generate{attend};
///     auto sums = generate.start(attend.on(prompt));
///     while (…) {
///         sums = generate.extend(sums, attend.on(word));      // word [B,1,D]
///         auto context = generate.answer(sums, query);        // query [B,Q]
///     }
///
/// The same contexts as attend(memory, queries, causal{}), in chunks of any size, without the padding. It trains, too.
template <class Attention>
struct streaming {
    Attention attend;

    /// The sums of a memory.
    auto start(const auto& memory) const
    {
        const auto keys = shape_of(memory.keys);
        const shape_of_rank<3> shape{keys[0], keys[2] - columns_of_gates, memory.width() + 1};
        return extend(sums_of_keys{constant_like(memory.keys, shape, 0)}, memory);
    }

    /// The sums with the keys of another memory behind them.
    auto extend(const auto& sums, const auto& memory) const
    {
        const double decay = attend.normalize.by_sums().decay;
        if constexpr (columns_of_gates > 0) {
            const auto [B, T, N] = shape_of(memory.keys);
            if (T == 0) return sums_of_keys{ops::scale(sums.of, 1)};
            const auto last = ops::carried_to(memory.keys, std::span<const std::size_t>{}, memory.real, T - 1,
                                              std::size_t{1});  // (F_n, 1) [B,1,2]
            const auto between = ops::dot_all(last, ops::columns_between(memory.keys, 0, 2));
            const auto left = ops::faded(constant_like(memory.keys, shape_of_rank<2>{B, T}, 1), between);
            const auto keys = ops::multiply(ops::columns_between(memory.keys, 2, N), ops::reshaped(left, B, T, 1));
            return sums_of_keys{ops::add_to_sums(ops::multiply(sums.of, ops::exp(ops::columns_between(last, 0, 1))),
                                                 keys, memory.values, memory.real, decay)};
        } else {
            return sums_of_keys{ops::add_to_sums(sums.of, memory.keys, memory.values, memory.real, decay)};
        }
    }

    /// The context [B,D] of one query, which sees all keys.
    auto answer(const auto& sums, const auto& query) const
    {
        using any_memory = memory<array<float, 3>, array<float, 3>>;
        static_assert(
            detail::plan<Attention, std::remove_cvref_t<decltype(attend.project(query))>, any_memory, causal>::linear,
            "heed: streaming is for linear attention: a score that is an inner product, such as "
            "score::kernel, or score::fading over it, normalize::ratio or normalize::retention, "
            "combine::weighted_sum");
        return ops::read_sums(detail::summed(attend.score).asking(attend.project(query)), sums.of,
                              attend.normalize.by_sums().divides);
    }

private:
    // Keys that fade by gates have their sums in front.
    static constexpr std::size_t columns_of_gates = detail::fades<decltype(Attention::score)> ? 2 : 0;
};
template <class Attention>
streaming(Attention) -> streaming<Attention>;

}  // namespace heed
