// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <tuple>

#include <heed/core/random.hpp>
#include <heed/core/tensor.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/recurrent.hpp>

namespace heed::inline HEED_TARGET::nn {

/// Update of the coverage C_j of source position j after a query s has put the weight α_j on its annotation h_j.
///
///     z   = σ(W_z h_j + S_z s + α_j a_z + U_z C_j),  r = σ(W_r h_j + S_r s + α_j a_r + U_r C_j)
///     C̃_j = tanh(W_c h_j + S_c s + α_j a_c + U_c (r ⊙ C_j))
///     C_j' = (1 − z) ⊙ C_j + z ⊙ C̃_j                  Tu et al. 2016, §3.1.2
///
/// The paper prints C_{i,j} = f(C_{i−1,j}, α_{i,j}, h_j, t_{i−1}) with a gated recurrent unit as f. The gates are taken
/// from the authors' code, which has no bias. nn::coverage_gru, the unit of Mi et al. 2016, reads the emitted word
/// instead of h_j and s; its z keeps the *old* coverage, and its r acts after the product.
template <class Matrix, class Vector>
struct gated_coverage {
    Matrix W;    // [D,3N], for z|r|C̃
    Matrix S;    // [Q,3N]
    Vector a;    // [3N]
    Matrix U;    // [N,2N], for z|r
    Matrix U_c;  // [N,N]

    std::size_t size() const { return shape_of(U_c)[0]; }

    /// The annotations' contribution, the same at every step: h [B,T,D] -> [B,T,3N].
    auto project(const tensor auto& annotations) const { return ops::linear(annotations, W); }

    /// One step: projected [B,T,3N], s [B,Q], α [B,T], C [B,T,N] -> the next C [B,T,N].
    auto step(const tensor auto& projected, const tensor auto& state, const tensor auto& weights,
              const tensor auto& coverage) const
    {
        const auto asked = ops::linear(state, S);  // [B,3N]
        const auto each = [](const auto& h, const auto& s, const auto& alpha, const auto& c, const auto& by_weight,
                             const auto& gates, const auto& candidate) {
            const auto inputs = ops::add_per_position(ops::add_outer(h, alpha, by_weight), s);  // [B,T,3N]
            return ops::gru(inputs, c, gates, candidate, ops::sentence_ends{});
        };
        return heed::detail::apply_by_rows(each, 8 * shape_of(weights)[1] * size() * size(),
                                           std::tie(projected, asked, weights, coverage), std::tie(a, U, U_c));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::gated_coverage{visit("W", self.W), visit("S", self.S), visit("a", self.a), visit("U", self.U),
                                  visit("U_c", self.U_c)};
    }
};

template <class Matrix, class Vector, class Matrix2, class Matrix3, class Matrix4>
gated_coverage(Matrix, Matrix2, Vector, Matrix3, Matrix4)
    -> gated_coverage<joint_tensor<Matrix, Matrix2, Matrix3, Matrix4>, Vector>;

/// A new cell for annotations of size `annotation` and queries of size `query`. The authors' code uses 10 dimensions of
/// coverage.
template <class T>
auto make_gated_coverage(random_source& random, std::size_t annotation, std::size_t query, std::size_t coverage = 10)
{
    return gated_coverage{glorot<T>(random, annotation, 3 * coverage), glorot<T>(random, query, 3 * coverage),
                          small_vector<T>(random, 3 * coverage), glorot<T>(random, coverage, 2 * coverage),
                          glorot<T>(random, coverage, coverage)};
}

}  // namespace heed::inline HEED_TARGET::nn
