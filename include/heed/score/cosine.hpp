// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/concepts.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/similarity.hpp>

namespace heed::score {

/// How well the directions of query q and annotation h_j agree.
///
///     e_j = scale · qᵀ h_j / (|q| |h_j|)      Graves et al. 2014 (Neural Turing Machines), eq. 5 and 6
///
/// `scale` is the sharpness, one over the temperature: as it is, scores lie within [-1, 1], and a softmax of them is
/// almost flat. Query and annotations have the same size, Q = D. Annotations are brought to length 1 once per batch. A
/// vector of length 0 matches nothing: score 0, gradient 0. No parameters.
struct cosine {
    double scale = 1;

    static constexpr weight_kind weights = weight_kind::per_position;

    auto prepare(const tensor auto& annotations) const  // [B,T,D] -> the same, of length 1 each
    {
        return ops::unit(annotations);
    }

    auto match(const tensor auto& query, const tensor auto& keys) const  // [B,D], [B,T,D] prepared -> [B,T]
    {
        return ops::dot_each(ops::scale(ops::unit(query), scale), keys);
    }

    auto operator()(const tensor auto& query, const tensor auto& keys) const { return match(query, keys); }

    static auto parameters(auto& self, auto&&) { return score::cosine{self.scale}; }
};

}  // namespace heed::score
