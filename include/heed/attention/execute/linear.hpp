// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/attention/execute/tiled.hpp>
#include <heed/attention/make_memory.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/plan.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/core/family.hpp>
#include <heed/masks/of_queries.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/carried_sums.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/linear_attention.hpp>
#include <heed/ops/masks.hpp>
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

namespace detail {

/// The policies that make a memory of values as they are.
template <class Score, class Normalize>
struct policies_with_plain_sum {
    const Score& score;
    const Normalize& normalize;
    heed::combine::weighted_sum combine{};
};

}  // namespace detail

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

/// Linear attention, also with combine::delta_rule, for generation: stores one matrix for each sentence, and each word
/// costs the same.
///
///     S_t = γ S_{t−1} + k_t v_tᵀ,  c_t = q_tᵀ S_t / z_t        Katharopoulos et al. 2020, eq. 16-20; Sun et al. 2023,
///     eq. 6; with a_t instead of γ, score::gated_decay, Yang et al. 2024, section 4.1
///
///     streaming generate{attend};
///     auto sums = generate.start(attend.on(prompt));
///     while (…) {
///         sums = generate.extend(sums, word);                 // [B,1,D]
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
        return added(sums_of_keys{constant_like(memory.keys, shape, 0)}, memory);
    }

    /// The sums after adding words [B,n,D], `rest` as in attention::on; or the keys of another memory.
    auto extend(const auto& sums, const auto& more, const auto&... rest) const
    {
        if constexpr (tensor<decltype(more)>) {
            return added(sums, memory_after(sums, more, rest...));
        } else {
            static_assert(!corrects, "heed: combine::delta_rule corrects values by the state: give the annotations, "
                                     "generate.extend(sums, words)");
            return added(sums, more);
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
    static constexpr bool corrects = detail::has_prepare_values<
        std::remove_cvref_t<decltype(heed::summing(std::declval<const Attention&>().combine))>>;

    /// The memory of words that follow those in the sums.
    auto memory_after(const auto& sums, const tensor auto& words, const auto&... rest) const
    {
        if constexpr (!corrects) {
            return attend.on(words, rest...);
        } else {
            using given = detail::policies_with_plain_sum<decltype(Attention::score), decltype(Attention::normalize)>;
            const given plain{attend.score, attend.normalize};
            auto memory = detail::from_source("streaming::extend", detail::memory_by{plain}, words, rest...);
            const auto [B, T, N] = shape_of(memory.keys);
            const auto keys = ops::slice_columns(memory.keys, columns_of_gates, N);
            const auto predicted = ops::bmm(ops::reshaped(faded(keys, memory.keys), B * T, N - columns_of_gates),
                                            ops::slice_columns(sums.of, 0, memory.width()));
            auto values = heed::summing(attend.combine)
                              .prepare_values(ops::subtract(memory.values, predicted),
                                              detail::source_of_values{words, memory.keys, memory.real, memory.mask,
                                                                       attend.score, attend.normalize});
            return heed::memory<decltype(values), decltype(memory.keys), decltype(memory.mask)>{
                std::move(values), std::move(memory.keys), std::move(memory.real), std::move(memory.mask)};
        }
    }

    /// Rows [B,n,F], each times the decay of the sums up to it; `keys` as prepared.
    auto faded(const tensor auto& rows, const tensor auto& keys) const
    {
        if constexpr (columns_of_gates > 0) {
            return ops::multiply(rows, ops::exp(ops::scale(ops::slice_columns(keys, 1, 2), -1)));
        } else {
            using number = plain_number<element_of<decltype(rows)>>;
            const double decay = attend.normalize.linear_rule().decay;
            array<number, 3> left(shape_of_rank<3>{1, shape_of(rows)[1], 1});
            for (std::size_t i = 0; i < left.size(); ++i)
                left(0, i, 0) = static_cast<number>(std::pow(decay, static_cast<double>(i + 1)));
            return ops::multiply(rows, same_family(rows, left));
        }
    }

    /// The sums plus the keys of a memory, without those that its mask hides.
    auto added(const auto& sums, const auto& memory) const
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
            return sums_of_keys{ops::add_to_sums(ops::multiply(sums.of, ops::exp(ops::slice_columns(last, 0, 1))),
                                                 visible(keys, memory.mask), memory.values, memory.real, decay)};
        } else {
            return sums_of_keys{
                ops::add_to_sums(sums.of, visible(memory.keys, memory.mask), memory.values, memory.real, decay)};
        }
    }
    static const auto& visible(const tensor auto& keys, const no_mask&) { return keys; }
    static auto visible(const tensor auto& keys, const boolean_mask<2>& mask) { return ops::zero_masked(keys, mask); }

    // Keys that decay by gates begin with the sums of the gates.
    static constexpr std::size_t columns_of_gates = detail::fades<decltype(Attention::score)> ? 2 : 0;
};
template <class Attention>
streaming(Attention) -> streaming<Attention>;

}  // namespace heed::inline HEED_TARGET
