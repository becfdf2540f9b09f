// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/cxx20.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::score {

/// Base class of scores with one hidden layer and several outputs, V = (V_1 … V_G): e_j^g = V_gᵀ tanh(W s + U h_j + b).
template <class Matrix, class Bias>
struct hidden_layer {
    Matrix W;                         // [Q,A]
    Matrix U;                         // [D,A]
    Matrix V;                         // [A,G]
    HEED_NO_UNIQUE_ADDRESS Bias b{};  // [A], optional

    auto prepare(const tensor auto& annotations) const  // [B,T,D] -> [B,T,A]
    {
        return ops::linear(annotations, U);
    }

    auto project(const tensor auto& query) const  // [B,Q] -> [B,A]
    {
        return heed::detail::linear_with(query, W, b);
    }

    auto match(const tensor auto& projected, const tensor auto& keys) const  // [B,A], [B,T,A] -> [B,T,G]
    {
        return ops::linear(ops::tanh_of_sum_per_position(keys, projected), V);
    }

    auto operator()(const tensor auto& query, const tensor auto& keys) const  // [B,Q], [B,T,A] -> [B,T,G]
    {
        return match(project(query), keys);
    }
};

/// Fine-grained attention by groups: one score for each of G groups of dimensions of annotation h_j.
///
///     e_j^g = V_gᵀ tanh(W s + U h_j)          between Bahdanau et al. 2015 and Choi et al. 2018, eq. 7; ours
///
/// `combine::grouped_sum` gives the dimensions of group g the weight α^g. G = 1 is `additive`, G = D is
/// `additive_per_dimension`. A score costs A·G multiplications. `with_word{additive_grouped{W, U, V}, Y}` also reads
/// the previous target word. No bias, as in the two papers; `additive_grouped{W, U, V, b}` adds one inside the tanh.
template <class Matrix, class Bias = no_bias>
struct additive_grouped : hidden_layer<Matrix, Bias> {
    static constexpr score_traits traits{.weights = weight_kind::per_group};

    std::size_t groups() const { return shape_of(this->V)[1]; }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::additive_grouped{visit("W", self.W), visit("U", self.U), visit("V", self.V), visit("b", self.b)};
    }
};

template <class Matrix, class Matrix2, class Matrix3, class Bias = no_bias>
additive_grouped(Matrix, Matrix2, Matrix3, Bias = {}) -> additive_grouped<joint_tensor<Matrix, Matrix2, Matrix3>, Bias>;

}  // namespace heed::inline HEED_TARGET::score
