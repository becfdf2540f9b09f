// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/ops/products.hpp>
#include <heed/score/dot.hpp>

namespace heed::inline HEED_TARGET::score {

/// Scores query h against annotation h_j by a bilinear form.
///
///     e_j = hᵀ W h_j                          Luong et al. 2015, section 3.1
///
/// hᵀ W is computed once per step, T times cheaper than W h_j for every position. No deviation.
template <class Matrix>
struct general : inner_product<general<Matrix>> {
    Matrix W;  // [Q,D]

    general() = default;
    general(Matrix matrix) : W(std::move(matrix)) {}

    auto project(const tensor auto& query) const  // [B,Q] -> [B,D]
    {
        return ops::linear(query, W);
    }

    static auto parameters(auto& self, auto&& visit) { return score::general{visit("W", self.W)}; }
};

}  // namespace heed::inline HEED_TARGET::score
