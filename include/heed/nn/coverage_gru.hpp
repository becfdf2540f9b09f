// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tuple>

#include <heed/core/random.hpp>
#include <heed/core/tensor.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/recurrent.hpp>

namespace heed::nn {

/// How the coverage c_j of source position j changes after the word y was emitted with weight α_j there.
///
///     z   = σ(W_z y + α_j a_z + U_z c_j),  r = σ(W_r y + α_j a_r + U_r c_j)
///     c̃_j = tanh(W_c y + α_j a_c + r ⊙ U_c c_j)
///     c_j' = z ⊙ c_j + (1 − z) ⊙ c̃_j          Mi et al. 2016, printed in Sankaran et al. 2016, §4.1
///
/// Unlike nn::gru, z keeps the *old* coverage, and r acts after the product (docs/decisions.md). No bias, as printed.
/// All positions share the parameters; the three products with c are computed as one.
template <class Matrix, class Vector>
struct coverage_gru {
    Matrix W;  // [E,3N], for z|r|c̃
    Vector a;  // [3N]
    Matrix U;  // [N,3N]

    std::size_t size() const { return shape_of(U)[0]; }

    /// y [B,E], α [B,T], c [B,T,N] -> [B,T,N]
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

/// A new unit for words of size `word`. The papers' coverage has 100 numbers per position.
template <class T>
auto make_coverage_gru(random_source& random, std::size_t word, std::size_t coverage = 100)
{
    return coverage_gru{glorot<T>(random, word, 3 * coverage), small_vector<T>(random, 3 * coverage),
                        glorot<T>(random, coverage, 3 * coverage)};
}

}  // namespace heed::nn
