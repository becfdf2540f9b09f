// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Position encodings relative to the query: shaw2018, raffel2020, su2021, press2022, golovneva2024.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/relative.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/contextual_positions.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/modified.hpp>
#include <heed/score/relative.hpp>
#include <heed/score/rotary.hpp>
#include <heed/score/scaled_dot.hpp>
#include <heed/simd/lookup_table.hpp>

/// Shaw, Uszkoreit, Vaswani 2018, "Self-Attention with Relative Position Representations".
namespace heed::inline HEED_TARGET::papers::shaw2018 {

/// Scaled dot products of queries with keys and with their distance, without the vectors that eq. 3 adds to the values.
///
///     e_ij = q_i · (k_j + a_{clip(j − i, −R, R)}) / √d                eq. 4 and 5
///
/// `distances` [d, 2R + 1] has a column a_r for each distance.
auto relative(auto distances)
{
    return attention{score::relative{score::scaled_dot{}, std::move(distances)}, normalize::softmax{},
                     combine::weighted_sum{}};
}

/// As above, with vectors for the values: `of_values` [2R + 1, D] has a row for each distance.
///
///     z_i = Σ_j α_ij (v_j + a_{clip(j − i, −R, R)})                   eq. 3
auto relative(auto distances, auto of_values)
{
    return attention{score::relative{score::scaled_dot{}, std::move(distances)}, normalize::softmax{},
                     combine::relative{std::move(of_values)}};
}

}  // namespace heed::inline HEED_TARGET::papers::shaw2018

/// Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer" (T5).
namespace heed::inline HEED_TARGET::papers::raffel2020 {

/// Assigns distances to buckets. The first half of the `count` buckets have one distance each; the others are ranges
/// that grow by a constant factor up to `longest`, and the last one contains all larger distances. For queries that see
/// no later keys; with `both_ways`, as in an encoder, the second half of all buckets is for later keys. Section 2.1 has
/// no formula; this is the authors' code (mesh, transformer_layers.py).
struct buckets {
    std::int32_t count = 32, longest = 128;  // distances in positions
    bool both_ways = false;

    /// The bucket of query − key.
    pack<std::int32_t> operator()(const pack<std::int32_t>& distance) const
    {
        const std::int32_t of_a_side = both_ways ? count / 2 : count, exact = of_a_side / 2;
        const pack<std::int32_t> n = both_ways ? abs(distance) : max(distance, 0);
        const double factor = (of_a_side - exact) / std::log(static_cast<double>(longest) / exact);
        // If the logarithm is an integer, rounding must not change the bucket.
        const pack<std::int32_t> far(exact + log(pack<double>(max(n, 1)) / exact) * factor + 1e-9);
        const pack<std::int32_t> bucket = select(n < exact, n, min(far, of_a_side - 1));
        return both_ways ? select(distance < 0, bucket + of_a_side, bucket) : bucket;
    }
};

/// e + b[head, bucket(s − j)]; b [heads, buckets] is learned. Buckets are read from a table: a logarithm for each score
/// would take as long as all other work.
class bias_of_distance {
public:
    explicit bias_of_distance(const raffel2020::buckets& which = {}) : longest_(which.longest)
    {
        std::vector<std::int32_t> all;
        for (std::int32_t i = -longest_; i <= longest_; ++i) all.push_back(which(pack<std::int32_t>(i))[0]);
        bucket_of_ = std::make_shared<const std::vector<std::int32_t>>(std::move(all));
    }

    auto operator()(const auto& e, const score_index& p, const auto& b) const
    {
        const lane_table<std::int32_t, 1> bucket_of{bucket_of_->data(), {bucket_of_->size()}};
        return e + b(p.head, bucket_of(p.query - p.key + longest_));
    }

private:
    std::int32_t longest_;
    std::shared_ptr<const std::vector<std::int32_t>> bucket_of_;  // distances from −longest; copies share it
};

/// Attention with a learned bias for each head and distance.
///
///     α_ij = softmax_j(q_i · k_j + b_{h, bucket(i − j)})         section 2.1; no scale
///
/// Deviation: in the paper all layers share one table; here each attention has its own. An encoder's buckets are `{32,
/// 128, true}`, a decoder's are the default.
auto relative_bias(auto table, const raffel2020::buckets& which = {})  // [heads, buckets]
{
    return attention{score::modified{score::dot{}, std::move(table), bias_of_distance{which}}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::raffel2020

/// Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding".
namespace heed::inline HEED_TARGET::papers::su2021 {

/// Scaled dot products of queries and keys that are rotated by their positions; one head.
///
///     a_{m,n} = softmax_n((R_m q_m) · (R_n k_n) / √d)            eq. 16; the pairs of eq. 15 and 34
inline auto rotary()
{
    return attention{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::su2021

/// Press, Smith and Lewis 2022, "Train Short, Test Long: Attention with Linear Biases Enables Input Length
/// Extrapolation".
namespace heed::inline HEED_TARGET::papers::press2022 {

/// The slope of head h of H: m_h = 2^(−8 (h+1) / H). std::exp2 may set errno, so a compiler would call it for every
/// key; since this function is [[gnu::const]], the slope is computed once for all keys.
[[gnu::const, gnu::noinline]] inline double slope(std::int32_t head, std::size_t heads)
{
    return std::exp2(-8.0 * (head + 1) / static_cast<double>(heads));
}

/// The penalty of head h of H: e − 2^(−8 (h+1) / H) · (s − j) for query s and key j.
struct linear_bias {
    std::size_t heads = 1;  // H

    auto operator()(const auto& e, const score_index& p) const
    {
        return e - press2022::slope(p.head, heads) * (p.query - p.key);
    }
};

/// The slopes of the authors' code, which differ if H is not a power of 2. With P the largest power of 2 up to H, the
/// first P heads have the slopes of P heads; the other heads have every second slope of 2P heads, starting with the
/// first:
///
///     m_h = 2^(−8 (h+1) / P)  for h < P,    2^(−8 (2 (h − P) + 1) / 2P)  for the others
struct linear_bias_of_program {
    std::size_t heads = 1;  // H

    auto operator()(const auto& e, const score_index& p) const
    {
        const std::size_t power = std::bit_floor(heads);
        const auto first = static_cast<std::int32_t>(power);
        if (p.head < first) return linear_bias{power}(e, p);
        score_index as_of_twice = p;
        as_of_twice.head = 2 * (p.head - first);
        return linear_bias{2 * power}(e, as_of_twice);
    }
};

/// Attention with linear biases, for one of `heads` heads; a multi_head passes each head its index. For queries that
/// see no later keys, `attend(memory, queries, causal{})`: it would prefer later keys.
///
///     α_i = softmax(q_i Kᵀ + m_h · [−(i − 1), …, −2, −1, 0])    section 3
///
/// For a model of the authors' code with a number of heads that is not a power of 2, use alibi_of_program(). Deviation:
/// dot products are scaled, as in the Transformer; the paper omits the scale from its equation.
inline auto alibi(std::size_t heads)
{
    return attention{score::modified{score::scaled_dot{}, linear_bias{heads}}, normalize::softmax{},
                     combine::weighted_sum{}};
}

/// Like alibi, with the slopes of the authors' code: m_h = 2^(−8 (2 (h − P) + 1) / 2P) for a head h from P on, see
/// linear_bias_of_program.
inline auto alibi_of_program(std::size_t heads)
{
    return attention{score::modified{score::scaled_dot{}, linear_bias_of_program{heads}}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::press2022

/// Golovneva, Wang, Weston and Sukhbaatar 2024, "Contextual Position Encoding: Learning to Count What's Important".
namespace heed::inline HEED_TARGET::papers::golovneva2024 {

/// Attention of one head with contextual positions (CoPE), z [D, p_max + 1]: `attend(memory, queries, causal{})`.
///
///     a_ij = softmax_j(q_i · (k_j + z[p_ij]) / √d)                                            section 4
///     p_ij = min(p_max, Σ_{l=j..i} σ(q_i · k_l / √d))
auto contextual(auto positions)
{
    return attention{score::contextual_positions{score::scaled_dot{}, std::move(positions)}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::golovneva2024
