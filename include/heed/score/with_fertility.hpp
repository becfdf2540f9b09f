// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/ops/coverage.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/over.hpp>

namespace heed::score {

/// What the accumulated coverage remembers.
template <class Coverage, class Fertility, class Inner = no_past>
struct fertility_past {
    Coverage coverage;    // [B,T] C_{t−1}
    Fertility fertility;  // [B,T] Φ, the same at every step
    Inner base;

    auto map(auto&& f, const auto&... others) const
    {
        return score::fertility_past{f(coverage, others.coverage...), f(fertility, others.fertility...),
                                     base.map(f, others.base...)};
    }
};
template <class Coverage, class Fertility, class Inner>
fertility_past(Coverage, Fertility, Inner) -> fertility_past<Coverage, Fertility, Inner>;

/// A score that also reads how much attention each source word has had, in parts of what it should get (linguistic
/// coverage).
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + v_c C_{t−1,j})
///     C_{t,j} = C_{t−1,j} + α_{t,j} / Φ_j,  C_{0,j} = 0
///     Φ_j = N σ(U_f h_j)                      Tu et al. 2016, eq. 7-9 [lit] · SPEC V4
///
/// v_c C joins the keys of any base score. Φ_j, the fertility, is the number of target words that position j is
/// expected to yield, at most N. h_j are the memory's values. Only the accumulated form is here; the gated one of the
/// same paper is `with_gated_coverage`. Both are named in Sankaran et al. 2016, §5.
/// Deviations: Φ counts for at least 1e-6, where σ has underflowed. Ours: with a weight for each dimension, α is their
/// mean.
template <class Base, class Vector>
struct with_fertility : over::another<Base> {
    using over::another<Base>::base;
    Vector v_c;  // [A]
    Vector U_f;  // [D]
    double N = 2;

    static constexpr bool reads_context = over::reads_context<Base>();

    auto project(const auto& query) const { return over::project(base, query); }

    /// Φ [B,T] of annotations [B,T,D].
    auto fertility(const tensor auto& annotations) const
    {
        return ops::scale(ops::sigmoid(ops::matvec(annotations, U_f)), N);
    }

    auto start(const auto& memory) const
    {
        const auto& beside = over::taped_among(memory.keys, v_c, U_f);
        auto expected = same_family(beside, fertility(memory.values));
        auto none = constant_like(beside, shape_of(expected), 0.0);
        return score::fertility_past{std::move(none), std::move(expected), over::start(base, memory)};
    }

    auto recall(const auto& past, const auto& at) const
    {
        static_assert(plain_tensor<Vector> || !plain_tensor<decltype(past.fertility)>,
                      "heed: this state was made by the plain score::with_fertility, so U_f would get no gradient from "
                      "its fertility: make the state with the lifted mechanism, lifted.start(memory)");
        return score::fertility_past{past.coverage, past.fertility, over::recall(base, past.base, at)};
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& past) const
    {
        return over::match(base, projected, ops::add_outer(keys, past.coverage, v_c), past.base);
    }

    auto advance(const auto& past, const tensor auto& weights_now, const tensor auto& context, const auto& at) const
    {
        return score::fertility_past{ops::add_share(past.coverage, over::per_position(weights_now), past.fertility),
                                     past.fertility, over::advance(base, past.base, weights_now, context, at)};
    }

    auto operator()(const auto& query, const tensor auto& keys, const auto& past) const
    {
        return match(project(query), keys, past);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_fertility{visit("base", self.base), visit("v_c", self.v_c), visit("U_f", self.U_f), self.N};
    }
};

template <class Base, class Vector>
with_fertility(Base, Vector, Vector, double = 2) -> with_fertility<Base, Vector>;

}  // namespace heed::score
