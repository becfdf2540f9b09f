// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tuple>

#include <heed/core/random.hpp>
#include <heed/core/tensor.hpp>
#include <heed/kernels/coverage.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>

namespace heed::inline HEED_TARGET::ops {

/// One step of coverage embeddings: word y [B,3N], weights α [B,T], by_weight w [3N], products u = c U [B,T,3N],
/// coverage c [B,T,N] -> the new coverage [B,T,N]. See kernels/coverage.hpp.
///
///     z|r = σ(y + α w + u),  c̃ = tanh(y_c + α w_c + r ⊙ u_c),  c' = z ⊙ c + (1 − z) ⊙ c̃
///     ∂a_z = ∂c' ⊙ (c − c̃) ⊙ z ⊙ (1 − z),  ∂a_c = ∂c' ⊙ (1 − z) ⊙ (1 − c̃²),  ∂a_r = ∂a_c ⊙ u_c ⊙ r ⊙ (1 − r)
///     ∂y += Σ_t ∂a,  ∂α += ∂a · w,  ∂w += Σ α ∂a,  ∂u_z|∂u_r|∂u_c += ∂a_z|∂a_r|r ⊙ ∂a_c,  ∂c += z ⊙ ∂c'
struct coverage_gru_op : operation<coverage_gru_op> {
    static shape_of_rank<3> shape(const auto& word, const auto& weights, const auto& by_weight, const auto& products,
                                  const auto& coverage)
    {
        const auto [B, T, N] = coverage.shape;
        require_shape("coverage_gru", "the word", word.shape, {B, 3 * N}, "three gates of the coverage's width, ",
                      coverage.shape);
        require_shape("coverage_gru", "the weights", weights.shape, {B, T}, "one for each position of the coverage");
        require_shape("coverage_gru", "the vector for the weights", by_weight.shape, {3 * N},
                      "three gates of the coverage's width, ", coverage.shape);
        require_shape("coverage_gru", "the product c U", products.shape, {B, T, 3 * N},
                      "three gates of the coverage's width, ", coverage.shape);
        return coverage.shape;
    }

    template <class T>
    static void forward(in<T, 2> word, in<T, 2> weights, in<T, 1> by_weight, in<T, 3> products, in<T, 3> coverage,
                        out<T, 3> next)
    {
        kernels::coverage_update(step_of(word, weights, by_weight, products, coverage), next.data);
    }

    template <class T>
    static void backward(in<T, 2> word, in<T, 2> weights, in<T, 1> by_weight, in<T, 3> products, in<T, 3> coverage,
                         in<T, 3>, in<T, 3> d_next, adjoint<T, 2> d_word, adjoint<T, 2> d_weights,
                         adjoint<T, 1> d_by_weight, adjoint<T, 3> d_products, adjoint<T, 3> d_coverage)
    {
        const kernels::coverage_adjoints<T> into{d_word.data, d_weights.data, d_by_weight.data, d_products.data,
                                                 d_coverage.data};
        kernels::coverage_update_backward(step_of(word, weights, by_weight, products, coverage), d_next.data, into);
    }

private:
    template <class T>
    static kernels::coverage_step<T> step_of(in<T, 2> word, in<T, 2> weights, in<T, 1> by_weight, in<T, 3> products,
                                             in<T, 3> coverage)
    {
        const auto [B, positions, N] = coverage.shape;
        return {B, positions, N, word.data, weights.data, by_weight.data, products.data, coverage.data};
    }
};
inline constexpr coverage_gru_op coverage_gru{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::nn {

/// Update of the coverage c_j of source position j after the word y was emitted with weight α_j.
///
///     z   = σ(W_z y + α_j a_z + U_z c_j),  r = σ(W_r y + α_j a_r + U_r c_j)
///     c̃_j = tanh(W_c y + α_j a_c + r ⊙ U_c c_j)
///     c_j' = z ⊙ c_j + (1 − z) ⊙ c̃_j          Mi et al. 2016, printed in Sankaran et al. 2016, §4.1
///
/// Unlike nn::gru, z keeps the *old* coverage, and r acts after the product (docs/explanation/decisions.md). No bias,
/// as in the paper.
template <class Matrix, class Vector>
struct coverage_gru {
    Matrix W;  // [E,3N], for z|r|c̃
    Vector a;  // [3N]
    Matrix U;  // [N,3N]

    std::size_t size() const { return shape_of(U)[0]; }

    /// One step: y [B,E], α [B,T], c [B,T,N] -> the next c [B,T,N].
    auto step(const tensor auto& word, const tensor auto& weights, const tensor auto& coverage) const
    {
        const auto inputs = ops::linear(word, W);  // [B,3N]
        const auto each = [](const auto& y, const auto& alpha, const auto& c, const auto& by_weight, const auto& u) {
            return ops::coverage_gru(y, alpha, by_weight, ops::linear(c, u), c);
        };
        return heed::detail::apply_by_rows(each, 8 * shape_of(weights)[1] * size() * size(),
                                           std::tie(inputs, weights, coverage), std::tie(a, U));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::coverage_gru{visit("W", self.W), visit("a", self.a), visit("U", self.U)};
    }
};

template <class Matrix, class Vector, class Matrix2>
coverage_gru(Matrix, Vector, Matrix2) -> coverage_gru<joint_tensor<Matrix, Matrix2>, Vector>;

/// A new cell for words of size `word`. In the papers, the coverage has 100 numbers per position.
template <class T>
auto make_coverage_gru(random_source& random, std::size_t word, std::size_t coverage = 100)
{
    return coverage_gru{glorot<T>(random, word, 3 * coverage), small_vector<T>(random, 3 * coverage),
                        glorot<T>(random, coverage, 3 * coverage)};
}

}  // namespace heed::inline HEED_TARGET::nn
