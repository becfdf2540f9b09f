// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ops/coverage.hpp>
#include <heed/ops/recurrent.hpp>
#include <heed/score/over.hpp>

namespace heed::score {

/// A score that also reads where the last step looked, through k filters of width r (location-aware attention).
///
///     f_t = F ∗ α_{t−1}
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + U_f f_{t,j})           Chorowski et al. 2015, eq. 8, 9 [lit] · SPEC R3
///
/// U_f f joins the keys of any base score. α_0 is zero: the first step has looked nowhere yet. The state is F ∗ α
/// instead of α, so that a window sees what lies beyond its edges. The width of the filters is odd.
/// Deviations: no bias; F is not mirrored, as in every toolkit. Ours: with a weight for each dimension, α is their
/// mean.
template <class Base, class Matrix>
struct with_location : over::another<Base> {
    using over::another<Base>::base;
    Matrix F;    // [k,r]
    Matrix U_f;  // [k,A]

    static constexpr bool reads_context = over::reads_context<Base>();

    auto project(const auto& query) const { return over::project(base, query); }

    auto start(const auto& memory) const
    {
        const shape_of_rank<2> shape{memory.batch(), memory.positions()};
        return start_from(memory, constant_like(over::taped_among(memory.keys, F, U_f), shape, 0.0));
    }

    /// The past before the first step as if the step before had looked there: α_0 [B,T]. What lies in the padding is
    /// cleared, so that a uniform α_0 may be uniform over all T.
    auto start_from(const auto& memory, const tensor auto& weights_before) const
    {
        require_shape("with_location::start_from", "the weights", shape_of(weights_before),
                      shape_of_rank<2>{memory.batch(), memory.positions()}, "one for each source position");
        const auto& beside = over::taped_among(memory.keys, F, U_f, weights_before);
        const auto seen = over::cleared(weights_before, memory);
        return score::features_past{ops::convolve(same_family(beside, seen), F), over::start(base, memory)};
    }

    auto recall(const auto& past, const auto& at) const
    {
        return score::features_past{past.features, over::recall(base, past.base, at)};
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& past) const
    {
        return over::match(base, projected, ops::linear_onto(keys, past.features, U_f), past.base);
    }

    auto advance(const auto& past, const tensor auto& weights_now, const tensor auto& context, const auto& at) const
    {
        return score::features_past{ops::convolve(over::per_position(weights_now), F),
                                    over::advance(base, past.base, weights_now, context, at)};
    }

    auto operator()(const auto& query, const tensor auto& keys, const auto& past) const
    {
        return match(project(query), keys, past);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_location{visit("base", self.base), visit("F", self.F), visit("U_f", self.U_f)};
    }
};

template <class Base, class Matrix>
with_location(Base, Matrix, Matrix) -> with_location<Base, Matrix>;

}  // namespace heed::score
