// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/combine/weighted_sum.hpp>
#include <heed/combine/wrapping.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/sums.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/query.hpp>

namespace heed::inline HEED_TARGET::combine {

/// A gate, computed from the query h, that scales the whole context.
///
///     β = σ(f_β(h)),  c' = β c                 Xu et al. 2015, section 4.2.1
///
/// f_β is one linear layer, h W + b. With W [Q,1] there is one β for the whole context, as in the paper. With W [Q,D]
/// there is one per dimension, c' = β ⊙ c: ours, the vector form that Tu et al. 2017 call a gate on the source side
/// (theirs also reads the previous word and the context itself). `gated{W, b}` wraps the weighted sum. Many queries are
/// computed at once, also in tiles. The gate of Qiu et al. 2025, before W_Q, is per_head::gated.
///
/// h is the query, or the state of a state_and_word: the decoder's state before this step, in Bahdanau's order. Throws
/// shape_error unless W has 1 or D columns.
template <class Matrix, class Vector, class Inner = weighted_sum>
struct gated : detail::wrapping_combiner<gated<Matrix, Vector, Inner>, Inner> {
    Matrix W;  // [Q,1] or [Q,D]
    Vector b;  // [1] or [D]
    Inner inner{};

    gated() = default;
    gated(Matrix matrix, Vector bias, Inner sum = {}) : W(std::move(matrix)), b(std::move(bias)), inner(std::move(sum))
    {}

    static constexpr combiner_traits traits{.weights = combiner_traits_of<Inner>().weights};

    auto finish(const tensor auto& c, std::size_t, const auto& at) const  // [B,D] -> [B,D]
    {
        return finish_matrix(c, at.query());
    }

    /// For many queries at once: [B,S,D] -> [B,S,D].
    auto finish_matrix(const tensor auto& c, const auto& query) const
    {
        const auto gate = ops::sigmoid(ops::linear(detail::state_of(query), W, b));
        const std::size_t D = shape_of(c).back(), G = shape_of(gate).back();
        if (G != 1 && G != D) {
            throw shape_error("combine::gated: W is " + shape_text(shape_of(W)) + " but must have 1 column, or " +
                              std::to_string(D) + ": one for each dimension of the context");
        }
        return G == D ? ops::multiply_alike(c, gate) : ops::multiply_parts(c, gate);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return combine::gated{visit("W", self.W), visit("b", self.b), visit("inner", self.inner)};
    }
};

}  // namespace heed::inline HEED_TARGET::combine
