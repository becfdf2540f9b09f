// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <heed/attention/concepts.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/family.hpp>
#include <heed/ops/places.hpp>
#include <heed/ops/products.hpp>

namespace heed::score {

/// The state of a mixture of Gaussians.
template <class Centres>
struct mixture_past {
    Centres centres;  // [B,K] κ

    auto map(auto&& f, const auto&... others) const
    {
        if constexpr (spares_rows<decltype(f)>) {
            return *this;  // a window cuts positions, not this
        } else {
            return score::mixture_past{f(centres, others.centres...)};
        }
    }
};
template <class Centres>
mixture_past(Centres) -> mixture_past<Centres>;

/// Soft windows that move along the sentence, as far as the query says; the annotations are not read.
///
///     φ(t,u) = Σ_k α_k exp(−β_k (κ_k − u)²)                       Graves 2013, §5.1
///     (α̂, β̂, κ̂) = W h_t + b,  α = exp(α̂),  β = exp(β̂),  κ_t = κ_{t−1} + exp(κ̂)
///
///     score::gaussian_mixture{W, b, W_kappa, b_kappa}             W [Q,2K]: α̂, then β̂; W_kappa [Q,K]: κ̂
///
/// Positions u count from 1, as in the paper, and κ_0 = 0: κ̂ = 0 moves a window by one position. Graves takes φ as the
/// weights, without a sum of 1: `normalize::retention{}`, whose decay of 1 leaves scores as they are.
/// `normalize::ratio{}` divides them by their sum. After a step κ_t is `next.score.centres` [B,K]: where the windows
/// are. Once they are beyond the last position, all has been read.
///
/// The paper's one linear map is cut in two, as windows move before anything is compared. b_kappa below 0 lets them
/// move by less than a position at each step. The state has one row per sentence and no positions. α̂ above 40
/// counts as 40, so that nothing overflows. Throws shape_error if W and W_kappa do not fit, or if there is no
/// component.
template <class Matrix, class Vector>
struct gaussian_mixture {
    Matrix W;        // [Q,2K]
    Vector b;        // [2K]
    Matrix W_kappa;  // [Q,K]
    Vector b_kappa;  // [K]

    static constexpr weight_kind weights = weight_kind::per_position;
    static constexpr bool never_negative = true;

    auto prepare(const tensor auto& annotations, std::size_t first = 0) const  // [B,T,D] -> [B,T,1]
    {
        using T = element_of<Matrix>;
        const std::size_t batch = shape_of(annotations)[0], positions = shape_of(annotations)[1];
        array<T, 3> numbers(shape_of_rank<3>{batch, positions, 1});
        for (std::size_t i = 0; i < batch * positions; ++i) {
            numbers.data()[i] = static_cast<T>(first + i % positions + 1);
        }
        return same_family(W, same_family(annotations, std::move(numbers)));
    }

    auto start(const auto& memory) const
    {
        const std::size_t K = shape_of(W_kappa)[1];
        if (K == 0 || shape_of(W)[1] != 2 * K) {
            throw shape_error("score::gaussian_mixture: W is " + shape_text(shape_of(W)) + " and W_kappa is " +
                              shape_text(shape_of(W_kappa)) +
                              "; give W two columns for each column of W_kappa, of which there is at least one");
        }
        const shape_of_rank<2> shape{memory.batch(), K};
        return score::mixture_past{constant_like(detail::taped_among(memory.keys, W_kappa), shape, 0.0)};
    }

    auto recall(const auto& past, const auto& at) const
    {
        return score::mixture_past{
            ops::move_places(past.centres, ops::linear(detail::state_of(at.query()), W_kappa, b_kappa))};
    }

    auto project(const tensor auto& query) const  // [B,Q] -> [B,2K]
    {
        return ops::linear(query, W, b);
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& past) const  // [B,T]
    {
        return ops::gaussian_mixture(projected, past.centres, keys);
    }

    auto operator()(const tensor auto& query, const tensor auto& keys, const auto& past) const  // past as recalled
    {
        return match(project(query), keys, past);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::gaussian_mixture{visit("W", self.W), visit("b", self.b), visit("W_kappa", self.W_kappa),
                                       visit("b_kappa", self.b_kappa)};
    }
};

template <class Matrix, class Vector, class Matrix2, class Vector2>
gaussian_mixture(Matrix, Vector, Matrix2, Vector2)
    -> gaussian_mixture<joint_tensor<Matrix, Matrix2>, joint_tensor<Vector, Vector2>>;

}  // namespace heed::score
