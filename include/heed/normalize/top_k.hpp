// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/errors.hpp>
#include <heed/kernels/sparse.hpp>
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/softmax.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::ops {

/// α = softmax(e) over the top k scores of each row (and those equal to the k-th), 0 elsewhere: e [B,T], or [B,T,D] for
/// each dimension separately.
///
///     ∂e_j += α_j (∂α_j − Σ_k α_k ∂α_k)
struct top_k_op : row_operation<top_k_op> {
    static constexpr const char* name = "top_k";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, std::size_t k, out<T, R> weights)
    {
        kernels::greatest_weights(e.shape[0], e.shape[1], detail::width_of(e.shape), real.data(), k, e.data,
                                  weights.data);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, std::size_t, in<T, R> weights, in<T, R> d_weights,
                         adjoint<T, R> d_e)
    {
        softmax_op::backward(e, real, weights, d_weights, d_e);
    }
};
inline constexpr top_k_op top_k{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Softmax over the top k scores; all other positions have weight 0.
///
///     α_j = exp(e_j) / Σ_{k in top} exp(e_k) for j in top, else 0    Zhao et al. 2019, "Explicit sparse Transformer"
///
/// The gradient is softmax's over the positions with a weight. Also works per dimension. Positions beyond a row's
/// length, and scores of -inf, get weight and gradient 0. Deviation: scores equal to the k-th largest all get a weight,
/// so that the result does not depend on the order of positions. Throws heed::error if k is 0.
struct top_k {
    static constexpr normalizer_traits traits{.rowwise = true, .shift_invariant = true};
    std::size_t k = 8;

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::top_k(at.visible(scores), at.real, checked());
    }

    kernels::tiles::top_k tile_rule() const { return {checked()}; }

    static auto parameters(auto& self, auto&&) { return normalize::top_k{self.k}; }

private:
    std::size_t checked() const
    {
        if (k == 0) throw error("top_k: k is 0, which leaves no weights; give at least 1");
        return k;
    }
};

}  // namespace heed::inline HEED_TARGET::normalize
