// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/ops/all_pairs.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/similarity.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/step_kernel.hpp>

namespace heed::inline HEED_TARGET::score {

/// Scores query q against annotation h_j by the cosine of their angle.
///
///     e_j = scale · qᵀ h_j / (|q| |h_j|)      Graves et al. 2014 (Neural Turing Machines), eq. 5 and 6
///
///     score::cosine{8}                        a fixed scale
///     score::cosine{array<float, 1>{8}}       a learned scale; ad::lift makes it a parameter like any other
///
/// `scale` is the sharpness: with 1, scores are within [-1, 1] and their softmax is almost flat. A tensor may also have
/// a number for each dimension, [D]. Query and annotations have the same size, Q = D; annotations are scaled to length
/// 1 once per batch. A vector of length 0 matches nothing: score 0, gradient 0.
template <class Scale = double>
struct cosine {
    Scale scale{1};  // a double, or a tensor [1] or [D]

    using kernel_tag = kernels::inner_product_score;
    static constexpr score_traits traits{.weights = weight_kind::per_position};

    auto prepare(const tensor auto& annotations) const  // [B,T,D] -> [B,T,D], each vector of length 1
    {
        return ops::normalize_l2(annotations);
    }

    auto match(const tensor auto& query, const tensor auto& keys) const  // [B,D], [B,T,D] prepared -> [B,T]
    {
        return ops::dot_per_position(asking(query), keys);
    }

    auto operator()(const tensor auto& query, const tensor auto& keys) const { return match(query, keys); }

    auto score_matrix(const tensor auto& queries, const tensor auto& keys) const  // [B,S,D], [B,T,D] -> [B·S,T]
    {
        return ops::bmm_nt(asking(queries), keys);
    }

    /// The query that tiles compare with keys.
    auto asking(const tensor auto& query) const
    {
        if constexpr (std::is_arithmetic_v<Scale>) {
            return ops::scale(ops::normalize_l2(query), scale);
        } else {
            return ops::multiply(ops::normalize_l2(query), scale);
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto scale = detail::visit_if_tensor(visit, "scale", self.scale);
        return score::cosine<decltype(scale)>{std::move(scale)};
    }
};

template <class Scale = double>
cosine(Scale = {}) -> cosine<detail::double_or_tensor<Scale>>;

}  // namespace heed::inline HEED_TARGET::score
