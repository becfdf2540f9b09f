// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/attention/inner_product.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/over_gates.hpp>

namespace heed::score {

/// A score that fades with what was forgotten since: each position has a gate, and the score of a key falls by the
/// gates of all later positions up to the query's own (forgetting attention, FoX).
///
///     e'_{i,j} = e_{i,j} + D_{i,j},  D_{i,j} = Σ_{l=j+1..i} log f_l,  f_l = σ(w · x_l + b)
///                                             Lin, Nikishin, He and Courville 2025, section 3
///
///     attention attend{score::forgetting{score::scaled_dot{}, w, b}, normalize::softmax{}, combine::weighted_sum{}};
///
/// D_{i,j} = F_i − F_j with F_j = Σ_{l≤j} log f_l: keys are prepared with (1, −F_j) before the base's, so that an inner
/// product of queries (F_i, 1, q) is e + D, within tiles, too; other bases get D added. `attention::extend` carries the
/// sum on. x_l are the annotations.
///
/// Deviation: in a multi_head the annotations are those of the head, x W_K, so that each head's gate, with its own w
/// and b, reads the head's keys; in the paper and the authors' program it reads all of x. Their w starts as other
/// matrices do, and b at 0. What their "Pro" block has besides (norms, an output gate, shifted keys) is not part of
/// this.
///
/// For self-attention: the i-th query stands at the i-th position of the memory, or at the last one if there are fewer.
/// F_i shifts all scores of a query alike: softmax does not see it, but sigmoid, sinks and temporal normalizers do.
/// Meant with causal{}: later keys get more, not less. No positions are needed in words or scores. Lie it over all
/// other scores but `modified`. Weights per position only. F is rounded to the tensors' type, an error of 1e-4 at F =
/// −1000 in float.
template <class Base, class Matrix, class Vector>
struct forgetting : over_gates<forgetting<Base, Matrix, Vector>, Base, Matrix, Vector> {
    using gates = over_gates<forgetting, Base, Matrix, Vector>;
    using gates::base;

    /// w [D,1] and b [1].
    forgetting(Base one, Matrix matrix, Vector vector) : gates(std::move(one), std::move(matrix), std::move(vector)) {}

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& now) const  // [B,T]
    {
        using past = std::remove_cvref_t<decltype(now.base)>;
        using comparing = std::remove_cvref_t<decltype(over::innermost(base))>;
        if constexpr (known_to_kernels_as<comparing, kernels::inner_product_score> &&
                      !over::changes_keys<Base, std::remove_cvref_t<decltype(keys)>, past>()) {
            const auto asked = over::innermost(base).asking(over::query(base, projected, now.base));
            return ops::dot_each(ops::concat(now.sums, asked), keys);
        } else {
            return gates::match(projected, keys, now);
        }
    }

    /// Scores [B·S,T] and what they fall by.
    auto changed(const tensor auto& scores, const tensor auto& sums) const { return ops::add_alike(scores, sums); }

    /// Queries [B,S,A] as they are multiplied with keys: (F_i, 1, q).
    auto asked_all(const tensor auto& asked, const auto& memory, std::size_t first) const
    {
        return ops::concat(gates::sums_at_queries(memory.keys, memory.real, first, shape_of(asked)[1]), asked);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto base = visit("base", self.base);
        auto w = visit("w", self.w);
        auto b = visit("b", self.b);
        return score::forgetting<decltype(base), decltype(w), decltype(b)>{std::move(base), std::move(w), std::move(b)};
    }
};

template <class Base, class Matrix, class Vector>
forgetting(Base, Matrix, Vector) -> forgetting<Base, Matrix, Vector>;

}  // namespace heed::score
