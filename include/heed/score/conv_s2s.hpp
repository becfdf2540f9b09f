// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention/concepts.hpp>
#include <heed/attention/inner_product.hpp>
#include <heed/attention/query.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>

namespace heed::score {

/// How well a decoder's convolution state h, together with the previous target word, matches encoder output z_j.
///
///     d = W h + b + g,  e_j = dᵀ z_j          Gehring et al. 2017, eq. 1 and 2
///
/// g is the embedding of the previous target word, added unchanged: the query is state_and_word{h [B,Q], g [B,D]}. The
/// paper's values are not the keys z_j but z_j plus the input embedding x_j: `attend.on(z, ops::add(z, x), lengths)`.
/// No deviation.
template <class Matrix, class Vector>
struct conv_s2s {
    Matrix W;  // [Q,D]
    Vector b;  // [D]

    using in_kernels = kernels::inner_product_score;
    static constexpr weight_kind weights = weight_kind::per_position;
    static constexpr bool reads_word = true;
    static constexpr bool adds_word = true;  // keeps with_word from being laid over it by mistake

    template <class Query>
    auto project(const Query& query) const  // [B,Q], [B,D] -> [B,D]
    {
        if constexpr (requires { query.state, query.word; }) {
            return ops::add_alike(ops::linear(query.state, W, b), query.word);
        } else {
            static_assert(
                detail::placeholder<Query>,
                "heed: score::conv_s2s asks with two tensors: give state_and_word{h, g}, the decoder's state [B,Q] and "
                "the embedding of the previous target word [B,D]");
            return query;
        }
    }

    auto match(const tensor auto& projected, const tensor auto& keys) const  // [B,D], [B,T,D] -> [B,T]
    {
        return ops::dot_each(projected, keys);
    }

    auto operator()(const auto& query, const tensor auto& keys) const { return match(project(query), keys); }

    auto match_all(const tensor auto& projected, const tensor auto& keys) const  // [B,S,D], [B,T,D] -> [B·S,T]
    {
        return ops::dot_all(projected, keys);
    }

    auto asking(const tensor auto& query) const { return query; }  // what tiles compare with keys

    static auto parameters(auto& self, auto&& visit) { return score::conv_s2s{visit("W", self.W), visit("b", self.b)}; }
};

template <class Matrix, class Vector>
conv_s2s(Matrix, Vector) -> conv_s2s<Matrix, Vector>;

}  // namespace heed::score
