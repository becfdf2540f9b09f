// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <utility>

#include <heed/kernels/rows.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/over.hpp>

namespace heed::ops {

/// y = C + α / Φ: C, α and Φ [B,T] -> [B,T]. Coverage C grows by weight α over fertility Φ. Φ counts as at least
/// `least`, so that nothing is divided by 0.
///
///     ∂C += ∂y,  ∂α += ∂y / Φ,  ∂Φ −= ∂y α / Φ²; where Φ counts as `least`, ∂Φ += 0
struct add_share_op : operation<add_share_op> {
    static constexpr double least = 1e-6;

    static shape_of_rank<2> shape(const auto& coverage, const auto& weights, const auto& fertility)
    {
        require_shape("add_share", "the weights", weights.shape, coverage.shape, "one for each number of the coverage");
        require_shape("add_share", "the fertility", fertility.shape, coverage.shape,
                      "one for each number of the coverage");
        return coverage.shape;
    }

    template <class T>
    static void forward(in<T, 2> coverage, in<T, 2> weights, in<T, 2> fertility, out<T, 2> y)
    {
        for (std::size_t i = 0; i < y.size(); ++i) {
            y.data[i] = coverage.data[i] + weights.data[i] / std::max(fertility.data[i], T(least));
        }
    }

    template <class T>
    static void backward(in<T, 2>, in<T, 2> weights, in<T, 2> fertility, in<T, 2> y, in<T, 2> d_y,
                         adjoint<T, 2> d_coverage, adjoint<T, 2> d_weights, adjoint<T, 2> d_fertility)
    {
        if (d_coverage) kernels::add(y.size(), d_coverage.data, d_y.data);
        for (std::size_t i = 0; i < y.size(); ++i) {
            const T f = fertility.data[i], by = std::max(f, T(least));
            if (d_weights) d_weights.data[i] += d_y.data[i] / by;
            if (d_fertility && f > T(least)) d_fertility.data[i] -= d_y.data[i] * weights.data[i] / (by * by);
        }
    }
};
inline constexpr add_share_op add_share{};

}  // namespace heed::ops

namespace heed::score {

/// The state of accumulated coverage.
template <class Coverage, class Fertility>
struct fertility_past {
    Coverage coverage;    // [B,T] C_{t−1}
    Fertility fertility;  // [B,T] Φ, the same at every step

    auto map(auto&& f, const auto&... others) const
    {
        return score::fertility_past{f(coverage, others.coverage...), f(fertility, others.fertility...)};
    }
};
template <class Coverage, class Fertility>
fertility_past(Coverage, Fertility) -> fertility_past<Coverage, Fertility>;

/// A score that also reads how much attention each source word has had, as a fraction of what it should get (linguistic
/// coverage).
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + v_c C_{t−1,j})
///     C_{t,j} = C_{t−1,j} + α_{t,j} / Φ_j,  C_{0,j} = 0
///     Φ_j = N σ(U_f h_j)                      Tu et al. 2016, eq. 7-9
///
/// v_c C is added to the keys of any base score. Φ_j, the fertility, is the number of target words that position j is
/// expected to yield, at most N. h_j are the memory's values. The gated coverage of the same paper is
/// `with_gated_coverage`. Sankaran et al. 2016, §5, name both.
/// Deviations: Φ is at least 1e-6, in case σ underflows. Ours: with weights per dimension, α is their mean.
template <class Base, class Vector>
struct with_fertility : over::another<with_fertility<Base, Vector>, Base> {
    using over::another<with_fertility<Base, Vector>, Base>::base;
    Vector v_c;  // [A]
    Vector U_f;  // [D]
    double N = 2;

    /// Φ [B,T] of annotations [B,T,D].
    auto fertility(const tensor auto& annotations) const
    {
        return ops::scale(ops::sigmoid(ops::matvec(annotations, U_f)), N);
    }

    auto begin(const auto& memory) const
    {
        const auto& beside = over::taped_among(memory.keys, v_c, U_f);
        auto expected = same_family(beside, fertility(over::values_in_one_piece(memory)));
        auto none = constant_like(beside, shape_of(expected), 0.0);
        return score::fertility_past{std::move(none), std::move(expected)};
    }

    auto keys(const tensor auto& plain_keys, const auto& past) const  // k + v_c C
    {
        return ops::add_outer(plain_keys, past.coverage, v_c);
    }

    auto after(const auto& past, const tensor auto& seen, const tensor auto&, const auto&) const  // C + α / Φ
    {
        return score::fertility_past{ops::add_share(past.coverage, over::per_position(seen), past.fertility),
                                     past.fertility};
    }

    template <class Past>
    static consteval void check_past()
    {
        static_assert(plain_tensor<Vector> || !plain_tensor<decltype(Past::fertility)>,
                      "heed: this state was made by the plain score::with_fertility, so U_f would get no gradient from "
                      "its fertility: make the state with the lifted mechanism, lifted.start(memory)");
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_fertility{visit("base", self.base), visit("v_c", self.v_c), visit("U_f", self.U_f), self.N};
    }
};

template <class Base, class Vector, class Vector2>
with_fertility(Base, Vector, Vector2, double = 2) -> with_fertility<Base, joint_tensor<Vector, Vector2>>;

}  // namespace heed::score
