// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/attention/execute/tiled.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/plan.hpp>
#include <heed/core/family.hpp>
#include <heed/masks/of_queries.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/carried_sums.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/linear_attention.hpp>
#include <heed/ops/shape.hpp>

/// Many queries in linear time, if weights are inner products up to a factor: the sum over keys comes first.
///
///     Σ_j (q · k_j) v_j = q · Σ_j k_j v_jᵀ             Katharopoulos et al. 2020, eq. 5-6
namespace heed::inline HEED_TARGET::detail::execute {

/// Contexts [B,S,D] of projected queries [B,S,F].
template <class Score, class Mask>
auto linear(const Score& score, const auto& normalize, const auto& memory, const auto& projected, std::size_t first,
            const Mask& mask)
{
    const auto asked = asking_all(summed(score), projected, memory, first);  // [B,S,F]
    if constexpr (fades<Score>) {
        return ops::gated_linear_attention(asked, memory.keys, memory.values, memory.real, first,
                                           normalize.linear_rule().divides);
    } else {
        return ops::linear_attention(asked, memory.keys, memory.values,
                                     visible_lengths(mask, memory.real, memory.positions()),
                                     std::is_same_v<Mask, causal>, normalize.linear_rule());
    }
}

}  // namespace heed::inline HEED_TARGET::detail::execute

namespace heed::inline HEED_TARGET {

/// The state of linear attention: Σ_j γ^age k_j [v_j, 1]ᵀ.
template <class Sums>
struct sums_of_keys {
    Sums of;  // [B,F,D+1]

    /// The sums with f applied; a beam selects hypotheses this way.
    auto map(auto&& f, const auto&... others) const
    {
        auto next = f(of, others.of...);
        return sums_of_keys<decltype(next)>{std::move(next)};
    }
};

template <class Sums>
sums_of_keys(Sums) -> sums_of_keys<Sums>;

/// Linear attention for generation: stores one matrix for each sentence, and each word costs the same.
///
///     S_t = γ S_{t−1} + k_t v_tᵀ,  c_t = q_tᵀ S_t / z_t        Katharopoulos et al. 2020, eq. 16-20; Sun et al. 2023,
///     eq. 6; with a_t instead of γ, score::gated_decay, Yang et al. 2024, section 4.1
///
///     streaming generate{attend};
///     auto sums = generate.start(attend.on(prompt));
///     while (…) {
///         sums = generate.extend(sums, attend.on(word));      // word [B,1,D]
///         auto context = generate.answer(sums, query);        // query [B,Q]
///     }
///
/// Computes the contexts of attend(memory, queries, causal{}), in chunks of any size, without the padding. It can be
/// trained.
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

    /// The sums after adding the keys of another memory.
    auto extend(const auto& sums, const auto& memory) const
    {
        const double decay = attend.normalize.linear_rule().decay;
        if constexpr (columns_of_gates > 0) {
            const auto [B, T, N] = shape_of(memory.keys);
            if (T == 0) return sums_of_keys{ops::scale(sums.of, 1)};
            const auto last = ops::carried_to(memory.keys, std::span<const std::size_t>{}, memory.real, T - 1,
                                              std::size_t{1});  // (F_n, 1) [B,1,2]
            const auto between = ops::bmm_nt(last, ops::slice_columns(memory.keys, 0, 2));
            const auto left = ops::decay_history(constant_like(memory.keys, shape_of_rank<2>{B, T}, 1), between);
            const auto keys = ops::multiply(ops::slice_columns(memory.keys, 2, N), ops::reshaped(left, B, T, 1));
            return sums_of_keys{ops::add_to_sums(ops::multiply(sums.of, ops::exp(ops::slice_columns(last, 0, 1))), keys,
                                                 memory.values, memory.real, decay)};
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
            "heed: streaming needs linear attention: an inner product such as score::kernel, optionally in "
            "score::gated_decay; normalize::ratio or normalize::retention; and combine::weighted_sum");
        return ops::read_sums(detail::summed(attend.score).asking(attend.project(query)), sums.of,
                              attend.normalize.linear_rule().divides);
    }

private:
    // Keys that decay by gates begin with the sums of the gates.
    static constexpr std::size_t columns_of_gates = detail::fades<decltype(Attention::score)> ? 2 : 0;
};
template <class Attention>
streaming(Attention) -> streaming<Attention>;

}  // namespace heed::inline HEED_TARGET
