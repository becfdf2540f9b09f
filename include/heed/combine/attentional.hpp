// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/combine/weighted_sum.hpp>
#include <heed/combine/wrapping.hpp>
#include <heed/core/workspace_tensor.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/query.hpp>

namespace heed::inline HEED_TARGET::combine {

/// Joins the context with the decoder state: Luong's attentional vector, from any combiner's context c.
///
///     h̃ = tanh(W_c [c; h])                    Luong et al. 2015, eq. 5
///
/// h is the query, or the state of a state_and_word. The result is [B,H] instead of [B,D]. No bias, and
/// `attentional{W_c}` wraps the weighted sum, as in the paper. A query with no visible position (an empty sentence)
/// gets 0, and no gradient (docs/explanation/decisions.md). Throws shape_error unless W_c has D + Q rows.
template <class Matrix, class Inner = weighted_sum>
struct attentional : detail::wrapping_combiner<attentional<Matrix, Inner>, Inner> {
    Matrix W_c;  // [D+Q,H]
    Inner inner{};

    attentional() = default;
    attentional(Matrix W, Inner sum = {}) : W_c(std::move(W)), inner(std::move(sum)) {}

    static constexpr combiner_traits traits{.weights = combiner_traits_of<Inner>().weights};

    auto finish(const tensor auto& c, std::size_t positions, const auto& at) const  // [B,D] -> [B,H]
    {
        const auto& query = at.query();
        const auto& h = detail::state_of(query);
        const auto [B, D] = shape_of(c);
        require_shape("combine::attentional", "W_c", shape_of(W_c), {D + shape_of(h)[1], shape_of(W_c)[1]},
                      "one row for each column of the context and the query");
        return cleared(ops::tanh(ops::linear(ops::concat(c, h), W_c)), positions, at);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return combine::attentional{visit("W_c", self.W_c), visit("inner", self.inner)};
    }

private:
    /// x [B,N], with 0 in the rows where none of the T positions is visible.
    template <tensor X>
    static auto cleared(X x, std::size_t positions, const auto& at)
    {
        const auto [B, N] = shape_of(x);
        auto* const kept = workspace_family::take<std::size_t>(B);
        bool all = true;
        for (std::size_t b = 0; b < B; ++b) {
            std::size_t t = 0;
            while (t < at.real[b] && !at.masks.is_visible(b * positions + t)) ++t;
            kept[b] = t < at.real[b] ? N : 0;
            all = all && t < at.real[b];
        }
        return all ? std::move(x) : ops::clear_padding(x, lengths_view{kept, B});
    }
};

}  // namespace heed::inline HEED_TARGET::combine
