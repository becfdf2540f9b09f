// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/modified.hpp>

/// Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer" (T5).
namespace heed::papers::raffel2020 {

/// Which distances share a number: each of the first half of `buckets` has its own, and the others ranges that grow by
/// a constant factor up to `longest`, beyond which all share the last one. For queries that see no later keys.
struct buckets {
    std::int32_t count = 32, longest = 128;

    /// The bucket of query − key.
    pack<std::int32_t> operator()(const pack<std::int32_t>& distance) const
    {
        const std::int32_t exact = count / 2;
        const pack<std::int32_t> n = max(distance, 0);
        const double factor = (count - exact) / std::log(static_cast<double>(longest) / exact);
        const pack<std::int32_t> far(exact + log(pack<double>(max(n, 1)) / exact) * factor);
        return select(n < exact, n, min(far, count - 1));
    }
};

/// e + b[head, bucket(s − j)]; b [heads, buckets] learns.
struct bias_of_distance {
    raffel2020::buckets buckets{};

    auto operator()(const auto& e, const place& p, const auto& b) const
    {
        return e + b(p.head, buckets(p.query - p.key));
    }
};

/// Attention with a learned bias for each head and distance, one of the heads of a decoder; the heads share the table
/// of the first layer in the paper, and have their own here.
///
///     softmax(q_i · k_j + b_{h, bucket(i − j)})                  section 2.1; no scale
template <class Matrix>
auto relative_bias(Matrix table, const raffel2020::buckets& which = {})  // [heads, buckets]
{
    return attention{score::modified{score::dot{}, std::move(table), bias_of_distance{which}}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::raffel2020
