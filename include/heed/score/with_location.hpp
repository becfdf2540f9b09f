// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/ops/products.hpp>
#include <heed/ops/windows.hpp>
#include <heed/score/over.hpp>

namespace heed::score {

/// The state of location-aware attention.
template <class Features, class Weights>
struct location_past {
    Features features;  // [B,T,k] F ∗ α
    Weights weights;    // [B,T] α of the last step: F ∗ α of positions that are new needs it

    auto map(auto&& f, const auto&... others) const
    {
        return score::location_past{f(features, others.features...), f(weights, others.weights...)};
    }
};
template <class Features, class Weights>
location_past(Features, Weights) -> location_past<Features, Weights>;

/// A score that also reads where the last step looked, through k filters of width r (location-aware attention).
///
///     f_t = F ∗ α_{t−1}
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + U_f f_{t,j})           Chorowski et al. 2015, eq. 8, 9
///
/// U_f f is added to the keys of any base score. α_0 is zero: nothing has been attended to before the first step. The
/// state is F ∗ α instead of α, so that a window sees what lies beyond its edges. The width of the filters is odd.
/// Deviations: no bias; F is not mirrored, as in every toolkit. Ours: with weights per dimension, α is their mean.
template <class Base, class Matrix>
struct with_location : over::another<with_location<Base, Matrix>, Base> {
    using over::another<with_location<Base, Matrix>, Base>::base;
    Matrix F;    // [k,r]
    Matrix U_f;  // [k,A]

    auto begin(const auto& memory) const
    {
        const shape_of_rank<2> shape{memory.batch(), memory.positions()};
        return looked_at(memory, constant_like(over::taped_among(memory.keys, F, U_f), shape, 0.0));
    }

    /// The state before the first step, as if a previous step had given the weights α_0 [B,T]. Padding is cleared, so
    /// that a uniform α_0 may be uniform over all T.
    auto start_from(const auto& memory, const tensor auto& weights_before) const
    {
        require_shape("with_location::start_from", "the weights", shape_of(weights_before),
                      shape_of_rank<2>{memory.batch(), memory.positions()}, "one for each source position");
        return this->beside_base(looked_at(memory, over::cleared(weights_before, memory)), memory);
    }

    auto keys(const tensor auto& plain_keys, const auto& past) const  // k + U_f f
    {
        return ops::linear_onto(plain_keys, past.features, U_f);
    }

    auto after(const auto&, const tensor auto& seen, const tensor auto&, const auto&) const  // F ∗ α_t
    {
        return convolved(over::per_position(seen));
    }

    /// Of a memory that has grown: a new position has had no weight, but its neighbours have.
    auto grow(const auto& past, const auto& begun, const auto& join, const auto&) const
    {
        return convolved(join(past.weights, begun.weights));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_location{visit("base", self.base), visit("F", self.F), visit("U_f", self.U_f)};
    }

private:
    auto convolved(auto alpha) const
    {
        auto features = ops::convolve(alpha, F);
        auto beside = same_family(features, std::move(alpha));
        return score::location_past{std::move(features), std::move(beside)};
    }

    auto looked_at(const auto& memory, const tensor auto& seen) const
    {
        const auto& beside = over::taped_among(memory.keys, F, U_f, seen);
        return convolved(same_family(beside, seen));
    }
};

template <class Base, class Matrix, class Matrix2>
with_location(Base, Matrix, Matrix2) -> with_location<Base, joint_tensor<Matrix, Matrix2>>;

}  // namespace heed::score
