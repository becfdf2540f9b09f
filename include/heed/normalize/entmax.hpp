// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention/concepts.hpp>
#include <heed/kernels/tiles/entmax_rule.hpp>
#include <heed/ops/entmax.hpp>

namespace heed::normalize {

/// As sparse as training finds best: α-entmax, whose α learns, between softmax (α = 1) and sparsemax (α = 2).
///
///     w_j = [(α − 1) e_j − τ]₊^{1/(α−1)},  τ such that Σ_j w_j = 1        Peters, Niculae, Martins 2019, eq. 4
///     α = 1 + σ(a)                                                  Correia, Niculae, Martins 2019, section 3.2
///
///     normalize::entmax{array<float, 1>{0}}     α = 1.5; a learns, ad::lift makes it a parameter, as any other
///
/// a is one number for each attention, and so one for each head of a multi_head: some heads become sparse, others do
/// not. τ is found by Newton's method. Works per dimension, with one α for all. A row without a score above -inf gets
/// weights 0. `entmax15` is α = 1.5 alone, and faster. Deviation: α is at least 1 + 10⁻⁶ (1.01 in the authors'
/// program, where bisection finds τ and a is drawn from N(0, 1) at first).
template <class Vector>
struct entmax {
    static constexpr bool row_by_row = true;      // see attention/at_once.hpp
    static constexpr bool ignores_offset = true;  // see normalize/temperature.hpp
    Vector a;                                     // [1]

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D], the same
    {
        return ops::entmax(at.visible(scores), a, at.real);
    }

    auto by_tiles() const { return kernels::tiles::entmax_with_shapes<Vector>{{}, a}; }

    static auto parameters(auto& self, auto&& visit)
    {
        auto shaped = visit("a", self.a);
        return entmax<decltype(shaped)>{std::move(shaped)};
    }
};

template <class Vector>
entmax(Vector) -> entmax<Vector>;

}  // namespace heed::normalize
