// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/cxx20.hpp>
#include <heed/core/errors.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/sums.hpp>
#include <heed/policy/query.hpp>

namespace heed::inline HEED_TARGET::per_head {

/// A gate for each head, computed from the query, that scales the head's context before W_O.
///
///     Y' = Y ⊙ σ(X W),  O = Y' W_O            Qiu et al. 2025 ("Gated Attention for Large Language Models")
///
/// With W [Q,n·V] there is a gate for each dimension of each head (elementwise), with W [Q,n] one for each head
/// (headwise). X is the input query of the multi_head, before W_Q. No bias, as in the paper; `gated{W, b}` adds one:
/// σ(X W + b).
///
///     multi_head attend{heads, W_Q, W_K, W_V, W_O, per_head::gated{W}};
template <class Matrix, class Bias = no_bias>
struct gated {
    Matrix W;                         // [Q,n·V] or [Q,n]
    HEED_NO_UNIQUE_ADDRESS Bias b{};  // [n·V] or [n], optional

    static constexpr std::size_t heads_per_value = 1;

    auto operator()(const tensor auto& contexts, const auto& query) const
    {
        const auto gates = ops::sigmoid(heed::detail::linear_with(detail::state_of(query), W, b));
        return ops::multiply_parts(contexts, gates);
    }

    static auto parameters(auto& self, auto&& visit) { return per_head::gated{visit("W", self.W), visit("b", self.b)}; }
};

template <class Matrix, class Bias = no_bias>
gated(Matrix, Bias = {}) -> gated<Matrix, Bias>;

}  // namespace heed::inline HEED_TARGET::per_head
