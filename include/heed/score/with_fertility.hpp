// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET::ops {

namespace functions {

/// α / max(Φ, 1e-6), which prevents division by 0; ∂Φ = 0 below 1e-6.
struct share {
    static auto value(auto weight, auto fertility) { return weight / enough(fertility); }
    static auto slope_a(auto, auto fertility, auto, auto dy) { return dy / enough(fertility); }
    static auto slope_b(auto weight, auto fertility, auto, auto dy)
    {
        return simd::select(fertility > least(fertility), -(dy * weight / (fertility * fertility)), decltype(dy){});
    }

private:
    static auto least(auto like) { return constant(like, 1e-6); }
    static auto enough(auto fertility)
    {
        return simd::select(fertility < least(fertility), least(fertility), fertility);
    }
};

}  // namespace functions

/// y = α / max(Φ, 1e-6): α and Φ [...] -> [...]         ∂α += ∂y / Φ,  ∂Φ −= y ∂y / Φ, 0 below 1e-6
inline constexpr binary<functions::share> share{"share", "the fertility", "one for each weight"};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::score {

/// A score that also reads the accumulated attention of each source word as a fraction of its fertility (linguistic
/// coverage).
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + v_c C_{t−1,j})
///     C_{t,j} = C_{t−1,j} + α_{t,j} / Φ_j,  C_{0,j} = 0
///     Φ_j = N σ(U_f h_j)                      Tu et al. 2016, eq. 7-9
///
/// v_c C is added to the keys of any base score. Φ_j, the fertility, is the expected number of target words for
/// position j, at most N; h_j are the memory's values. Deviations: Φ is at least 1e-6, in case σ underflows. Ours: for
/// weights per dimension, α is their mean.
template <class Base, class Vector>
struct with_fertility : over::score_adaptor<with_fertility<Base, Vector>, Base> {
    using over::score_adaptor<with_fertility<Base, Vector>, Base>::base;
    Vector v_c;  // [A]
    Vector U_f;  // [D]
    double N = 2;

    /// Φ [B,T] of annotations [B,T,D].
    auto fertility(const tensor auto& annotations) const
    {
        return ops::scale(ops::sigmoid(ops::matvec(annotations, U_f)), N);
    }

    auto init_state(const auto& memory) const
    {
        const auto& beside = over::taped_among(memory.keys, v_c, U_f);
        auto expected = same_family(beside, fertility(over::values_in_one_piece(memory)));
        auto none = constant_like(beside, shape_of(expected), 0.0);
        return score::coverage_and_known{std::move(none), std::move(expected)};
    }

    auto keys(const tensor auto& plain_keys, const auto& state) const  // k + v_c C
    {
        return ops::add_outer(plain_keys, state.coverage, v_c);
    }

    auto update_state(const auto& state, const tensor auto& seen, const tensor auto&, const auto&) const  // C + α / Φ
    {
        const auto share = ops::share(over::per_position(seen), state.known);
        return score::coverage_and_known{ops::add_same_shape(state.coverage, share), state.known};
    }

    template <class State>
    static consteval void check_state()
    {
        static_assert(plain_tensor<Vector> || !plain_tensor<decltype(State::known)>,
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

}  // namespace heed::inline HEED_TARGET::score
