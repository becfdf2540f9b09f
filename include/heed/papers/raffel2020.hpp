// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/modified.hpp>
#include <heed/simd/tables.hpp>

/// Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer" (T5).
namespace heed::papers::raffel2020 {

/// Which distances share a number: each of the first half of `count` buckets has its own, and the others ranges that
/// grow by a constant factor up to `longest`, beyond which all share the last one. For queries that see no later keys;
/// with `both_ways`, as in an encoder, the first half of all buckets is for earlier keys, and the second for later
/// ones. The program of the paper's authors (mesh, transformer_layers.py); the paper's section 2.1 has no formula.
struct buckets {
    std::int32_t count = 32, longest = 128;
    bool both_ways = false;

    /// The bucket of query − key.
    pack<std::int32_t> operator()(const pack<std::int32_t>& distance) const
    {
        const std::int32_t of_a_side = both_ways ? count / 2 : count, exact = of_a_side / 2;
        const pack<std::int32_t> n = both_ways ? abs(distance) : max(distance, 0);
        const double factor = (of_a_side - exact) / std::log(static_cast<double>(longest) / exact);
        // Where the logarithm is a whole number, its rounding must not decide.
        const pack<std::int32_t> far(exact + log(pack<double>(max(n, 1)) / exact) * factor + 1e-9);
        const pack<std::int32_t> bucket = select(n < exact, n, min(far, of_a_side - 1));
        return both_ways ? select(distance < 0, bucket + of_a_side, bucket) : bucket;
    }
};

/// e + b[head, bucket(s − j)]; b [heads, buckets] learns. Buckets are looked up as well, a logarithm for each score
/// would take as long as all else.
class bias_of_distance {
public:
    explicit bias_of_distance(const raffel2020::buckets& which = {}) : longest_(which.longest)
    {
        std::vector<std::int32_t> all;
        for (std::int32_t i = -longest_; i <= longest_; ++i) all.push_back(which(pack<std::int32_t>(i))[0]);
        bucket_of_ = std::make_shared<const std::vector<std::int32_t>>(std::move(all));
    }

    auto operator()(const auto& e, const place& p, const auto& b) const
    {
        const lane_table<std::int32_t, 1> bucket_of{bucket_of_->data(), {bucket_of_->size()}};
        return e + b(p.head, bucket_of(p.query - p.key + longest_));
    }

private:
    std::int32_t longest_;
    std::shared_ptr<const std::vector<std::int32_t>> bucket_of_;  // distances from −longest on; copies share it
};

/// Attention with a learned bias for each head and distance.
///
///     softmax(q_i · k_j + b_{h, bucket(i − j)})                  section 2.1; no scale
///
/// Deviation: in the paper all layers share one table; here each attention has its own. An encoder's buckets are
/// `{32, 128, true}`, a decoder's the default.
template <class Matrix>
auto relative_bias(Matrix table, const raffel2020::buckets& which = {})  // [heads, buckets]
{
    return attention{score::modified{score::dot{}, std::move(table), bias_of_distance{which}}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::raffel2020
