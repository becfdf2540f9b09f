// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/score/additive.hpp>

namespace heed::inline HEED_TARGET::score {

/// Scores query h against annotation h_j with a network that reads both as one vector.
///
///     e_j = vᵀ tanh(W [h; h_j])               Luong et al. 2015, section 3.1
///
/// This is `additive` with its W stacked on its U: W [h; h_j] = W_q h + W_k h_j, where W_q is the first Q rows of W and
/// W_k the last D. As in the paper, W is split in half by default; for other sizes, `concat{W, v, Q}`. No deviation. No
/// bias by default; `concat{W, v, Q, b}` adds one inside the tanh. Throws shape_error if W has an odd number of rows
/// and Q is not given, or fewer than Q rows.
template <class Matrix, class Vector, class Bias = no_bias>
struct concat {
    Matrix W;                         // [Q+D,A]
    Vector v;                         // [A]
    std::size_t query = 0;            // Q; 0: half of W's rows
    HEED_NO_UNIQUE_ADDRESS Bias b{};  // [A], optional

    using kernel_tag = kernels::additive_score;
    static constexpr score_traits traits{.weights = weight_kind::per_position};

    auto prepare(const tensor auto& annotations) const  // [B,T,D] -> [B,T,A]
    {
        return ops::linear(annotations, ops::slice_rows(W, cut(), shape_of(W)[0]));
    }

    auto project(const tensor auto& state) const  // [B,Q] -> [B,A]
    {
        return heed::detail::linear_with(state, ops::slice_rows(W, std::size_t{0}, cut()), b);
    }

    auto match(const tensor auto& projected, const tensor auto& keys) const  // [B,A], [B,T,A] -> [B,T]
    {
        return ops::matvec(ops::tanh_of_sum_per_position(keys, projected), v);
    }

    auto operator()(const tensor auto& state, const tensor auto& keys) const  // [B,Q], [B,T,A] -> [B,T]
    {
        return match(project(state), keys);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::concat{visit("W", self.W), visit("v", self.v), self.query, visit("b", self.b)};
    }

private:
    std::size_t cut() const
    {
        const std::size_t height = shape_of(W)[0];
        if (query > height || (query == 0 && height % 2 != 0)) {
            throw shape_error("score::concat: W is " + shape_text(shape_of(W)) + " and the query has " +
                              (query == 0 ? "half of its rows" : std::to_string(query) + " of its rows") +
                              "; W has Q + D rows, so give Q, as in concat{W, v, Q}");
        }
        return query == 0 ? height / 2 : query;
    }
};

template <class Matrix, class Vector, class Bias = no_bias>
concat(Matrix, Vector, std::size_t = 0, Bias = {}) -> concat<Matrix, Vector, Bias>;

}  // namespace heed::inline HEED_TARGET::score
