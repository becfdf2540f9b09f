// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/dot.hpp>

namespace heed::inline HEED_TARGET::score {

/// Scores a decoder's convolution state h, together with the previous target word, against encoder output z_j.
///
///     d = W h + b + g,  e_j = dᵀ z_j          Gehring et al. 2017, eq. 1 and 2
///
/// g is the embedding of the previous target word: the query is state_and_word{h [B,Q], g [B,D]}. The paper's values
/// are z_j plus the input embedding x_j: `attend.on(z, ops::add(z, x), lengths)`. No deviation.
template <class Matrix, class Vector>
struct conv_s2s : inner_product<conv_s2s<Matrix, Vector>> {
    Matrix W;  // [Q,D]
    Vector b;  // [D]

    conv_s2s() = default;
    conv_s2s(Matrix matrix, Vector bias) : W(std::move(matrix)), b(std::move(bias)) {}

    static constexpr score_traits traits{
        .weights = weight_kind::per_position,
        .reads_word = true,
        .adds_word = true,  // keeps with_word from wrapping it by mistake
    };

    template <class Query>
    auto project(const Query& query) const  // [B,Q], [B,D] -> [B,D]
    {
        if constexpr (requires { query.state, query.word; }) {
            return ops::add_same_shape(ops::linear(query.state, W, b), query.word);
        } else {
            static_assert(detail::placeholder<Query>, "heed: score::conv_s2s needs a query of two tensors: "
                                                      "state_and_word{h, g}, the decoder's state [B,Q] and "
                                                      "the embedding of the previous target word [B,D]");
            return query;
        }
    }

    static auto parameters(auto& self, auto&& visit) { return score::conv_s2s{visit("W", self.W), visit("b", self.b)}; }
};

}  // namespace heed::inline HEED_TARGET::score
