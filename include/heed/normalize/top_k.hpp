// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/attention/concepts.hpp>
#include <heed/core/errors.hpp>
#include <heed/kernels/tiles/rules.hpp>
#include <heed/ops/sparse.hpp>

namespace heed::normalize {

/// Softmax over the k greatest scores; all other positions have weight 0.
///
///     α_j = exp(e_j) / Σ_{k in top} exp(e_k) for j in top, else 0       Zhao et al. 2019, "Explicit sparse
///     Transformer"
///
/// The gradient is softmax's over the positions with a weight; which they are has none. Works per dimension, too.
/// Positions beyond a row's length, and scores of -inf, get weight and gradient 0. Deviation: scores equal to the k-th
/// greatest all get a weight, so that the order of positions does not decide. Throws heed::error if k is 0.
struct top_k {
    static constexpr bool row_by_row = true;      // see attention/at_once.hpp
    static constexpr bool ignores_offset = true;  // see normalize/temperature.hpp
    std::size_t k = 8;

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D], the same
    {
        return ops::top_k(at.visible(scores), at.real, checked());
    }

    kernels::tiles::top_k by_tiles() const { return {checked()}; }

    static auto parameters(auto& self, auto&&) { return normalize::top_k{self.k}; }

private:
    std::size_t checked() const
    {
        if (k == 0) throw error("top_k: k is 0, so that nothing has a weight; give at least 1");
        return k;
    }
};

}  // namespace heed::normalize
