// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <heed/kernels/softmax.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/fused_steps.hpp>
#include <heed/ops/products.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/state.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/score/additive_grouped.hpp>

namespace heed::inline HEED_TARGET::score {

/// Fine-grained (2D) attention: one score for each dimension d of annotation h_j.
///
///     e_j^d = V_dᵀ tanh(W s + U h_j)          Choi, Cho, Bengio 2018, eq. 7 (AttY2D without its y)
///
/// The hidden layer is shared; V = (V_1 … V_D) is [A,D]. The paper's score also reads the previous target word:
/// `with_word{additive_per_dimension{W, U, V}, Y}`. No deviation. No bias by default; `additive_per_dimension{W, U, V,
/// b}` adds one inside the tanh: tanh(W s + U h_j + b). A score costs A·D multiplications; `additive` costs A.
template <class Matrix, class Bias = no_bias>
struct additive_per_dimension : hidden_layer<Matrix, Bias> {
    static constexpr score_traits traits{.weights = weight_kind::per_dimension};

    static auto parameters(auto& self, auto&& visit)
    {
        return score::additive_per_dimension{visit("W", self.W), visit("U", self.U), visit("V", self.V),
                                             visit("b", self.b)};
    }
};

template <class Matrix, class Matrix2, class Matrix3, class Bias = no_bias>
additive_per_dimension(Matrix, Matrix2, Matrix3, Bias = {})
    -> additive_per_dimension<joint_tensor<Matrix, Matrix2, Matrix3>, Bias>;

}  // namespace heed::inline HEED_TARGET::score

/// Its kernel: kernels/per_dimension.hpp.
template <class Matrix, class Bias, class Normalize, class Combine>
    requires(heed::known_to_kernels_as<Normalize, heed::kernels::softmax_of_row>&&
                 heed::known_to_kernels_as<Combine, heed::kernels::elementwise_sum_of_row>)
struct heed::step_kernel<heed::score::additive_per_dimension<Matrix, Bias>, Normalize, Combine> {
    using operation = ops::per_dimension_step_op;

    template <class With>
    static auto answer(const auto& score, const Normalize&, const Combine&, const auto& in, const With&)
    {
        using ops::weights_of_step;
        constexpr bool wanted = std::is_same_v<With, weights_too>;
        auto seen = operation{}(in.query, in.keys, score.V, in.values, in.real,
                                wanted ? weights_of_step::returned : weights_of_step::left_out);
        return outcome{std::move(seen.context), std::move(seen.weights), no_state{}};
    }
};
