// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/combine/weighted_sum.hpp>
#include <heed/combine/wrapping.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/products.hpp>

namespace heed::combine {

/// Joins the context with the state that asked for it: Luong's attentional vector, from any combiner's context c.
///
///     h̃ = tanh(W_c [c; h])                    Luong et al. 2015, eq. 5
///
/// h is the query, or the state of a state_and_word. The result is [B,H] instead of [B,D]. No bias, as in the paper.
/// `attentional{W_c}` is over the weighted sum, as in the paper.
///
/// A query that may attend to nothing (an empty sentence) gets 0, and no gradient (docs/decisions.md).
template <class Matrix, class Inner = weighted_sum>
struct attentional : detail::laid_over_combiner<attentional<Matrix, Inner>> {
    Matrix W_c;  // [D+Q,H]
    Inner inner{};

    attentional() = default;
    attentional(Matrix W, Inner sum = {}) : W_c(std::move(W)), inner(std::move(sum)) {}

    static constexpr weight_kind weights = Inner::weights;

    auto finish(const tensor auto& c, std::size_t positions, const auto& at) const  // [B,D] -> [B,H]
    {
        const auto& query = at.query();
        const auto& h = detail::state_of(query);
        const auto [B, D] = shape_of(c);
        require_shape("combine::attentional", "W_c", shape_of(W_c), {D + shape_of(h)[1], shape_of(W_c)[1]},
                      "as many rows as the context and the query have columns together");
        return detail::clear_rows_without_positions(ops::tanh(ops::linear(ops::concat(c, h), W_c)), positions, at);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return combine::attentional{visit("W_c", self.W_c), visit("inner", self.inner)};
    }
};

template <class Matrix>
attentional(Matrix) -> attentional<Matrix>;
template <class Matrix, class Inner>
attentional(Matrix, Inner) -> attentional<Matrix, Inner>;

}  // namespace heed::combine
