// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/concepts.hpp>
#include <heed/ops/softmax.hpp>

namespace heed::normalize {

/// Scores become positive weights that sum to 1.
///
///     α_j = exp(e_j) / Σ_k exp(e_k)           Bahdanau et al. 2015, eq. 6 · SPEC N1
///     α_j^d = exp(e_j^d) / Σ_k exp(e_k^d)     Choi et al. 2018, eq. 8 · SPEC N2, for scores per dimension
///
/// Sums run over the positions before each row's length; behind it the weight is exactly 0. A row without any position
/// has no weights at all: zeros, and no gradient.
struct softmax {
    static constexpr bool row_by_row = true;  // see at_once.hpp
    static constexpr bool ignores_offset = true;

    auto operator()(const tensor auto& scores, const auto& at) const  // [B,T] or [B,T,D], the same
    {
        return ops::softmax(scores, at.real);
    }

    static auto parameters(auto&, auto&&) { return normalize::softmax{}; }
};

}  // namespace heed::normalize
