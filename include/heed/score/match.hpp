// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/kernels/tiles/comparisons.hpp>
#include <heed/ops/similarity.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::kernels {

/// e_j = 1 / (1 + |q − k_j|), in tiles only: a single step is composed of operations.
struct closeness_score {
    using in_tiles = tiles::closeness;
};

}  // namespace heed::inline HEED_TARGET::kernels

namespace heed::inline HEED_TARGET::score {

/// Scores query q by its closeness to annotation h_j.
///
///     e_j = 1 / (1 + |q - h_j|)               Yin et al. 2016 (ABCNN), section 4
///
/// The distance is Euclidean; the score is in (0, 1]. Query and annotations have the same size, Q = D. At q = h_j the
/// gradient is 0. ABCNN's matrix of all pairs of two sentences is `ops::match_matrix(x, y)`. No parameters.
struct match {
    using kernel_tag = kernels::closeness_score;
    static constexpr score_traits traits{.weights = weight_kind::per_position};

    auto operator()(const tensor auto& query, const tensor auto& keys) const  // [B,D], [B,T,D] -> [B,T]
    {
        return ops::match_per_position(query, keys);
    }

    static auto parameters(auto&, auto&&) { return score::match{}; }
};

}  // namespace heed::inline HEED_TARGET::score
