// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/ops/products.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/windows.hpp>
#include <heed/score/over.hpp>

namespace heed::ops {

/// y[b,t,i] = x[b,t+i-k], each position with its neighbours, 0 beyond the sentence: x [B,T] -> [B,T,2k+1].
///
///     ∂x[b,t+i-k] += ∂y[b,t,i]
struct neighbourhood_op : move_operation<neighbourhood_op, std::size_t> {
    static constexpr ranks takes{2, 2};

    static shape_of_rank<3> shape(const auto& x, std::size_t reach) { return {x.shape[0], x.shape[1], 2 * reach + 1}; }

    static void each_move(const auto& x, std::size_t reach, auto move)
    {
        const std::size_t width = 2 * reach + 1;
        move.nothing(0, x[0] * x[1] * width);
        for (std::size_t b = 0; b < x[0]; ++b) {
            for (std::size_t t = 0; t < x[1]; ++t) {
                const auto near = stretch::around(t, reach, x[1]);
                move(b * x[1] + near.first, (b * x[1] + t) * width + near.first + reach - t, near.count);
            }
        }
    }
};
inline constexpr neighbourhood_op neighbourhood{};

}  // namespace heed::ops

namespace heed::score {

/// Which past weights `with_neighbours` reads.
struct last_weights {};  // α_{t−1}
struct all_weights {};   // Σ_{i<t} α_i

/// A score that also reads the past weights of position j and of its k neighbours on either side.
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + M ξ_{t,j})              Cohn et al. 2016
///     ξ_{t,j} = [α_{t−1,j−k} … α_{t−1,j+k}]                     last_weights: the Markov condition
///     ξ_{t,j} = [Σ_{i<t} α_{i,j−k} … Σ_{i<t} α_{i,j+k}]         all_weights: local fertility
///
///     score::with_neighbours{score::with_neighbours{base, M, score::last_weights{}}, M_f, score::all_weights{}}
///
/// M ξ is added to the keys of any base score: inside the tanh, as in Cohn's paper; Sankaran et al. 2016, §5, say
/// "extra components to the pre-normalized attention". Weights before the first step and beyond the sentence are 0. The
/// paper's global fertility and bilingual symmetry are terms of a loss. Ours: with weights per dimension, α is their
/// mean.
template <class Base, class Matrix, class Which = last_weights>
struct with_neighbours : over::another<with_neighbours<Base, Matrix, Which>, Base> {
    using over::another<with_neighbours<Base, Matrix, Which>, Base>::base;
    Matrix M;  // [2k+1,A]
    HEED_NO_UNIQUE_ADDRESS Which which{};

    auto begin(const auto& memory) const
    {
        const std::size_t rows = shape_of(M)[0];
        if (rows % 2 == 0) {
            throw shape_error(
                "with_neighbours: M is " + shape_text(shape_of(M)) +
                ", but must have an odd number of rows, 2k + 1: a position and k neighbours on each side");
        }
        const shape_of_rank<3> shape{memory.batch(), memory.positions(), rows};
        return score::position_features{constant_like(over::taped_among(memory.keys, M), shape, 0.0)};
    }

    auto keys(const tensor auto& plain_keys, const auto& past) const  // k + M ξ
    {
        return ops::linear_onto(plain_keys, past.features, M);
    }

    auto after(const auto& past, const tensor auto& seen, const tensor auto&, const auto&) const
    {
        auto now = ops::neighbourhood(over::per_position(seen), shape_of(M)[0] / 2);
        if constexpr (std::is_same_v<Which, all_weights>) {
            return score::position_features{ops::add_alike(past.features, now)};
        } else {
            return score::position_features{std::move(now)};
        }
    }

    /// Of a memory that has grown: a new position has had no weight, but its neighbours have.
    auto grow(const auto& past, const auto& begun, const auto& join, const auto&) const
    {
        const auto features = join(past.features, begun.features);
        const auto [B, T, width] = shape_of(features);
        const auto own = ops::columns_between(features, width / 2, width / 2 + 1);  // of the position itself
        return score::position_features{ops::neighbourhood(ops::reshaped(own, B, T), width / 2)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_neighbours{visit("base", self.base), visit("M", self.M), self.which};
    }
};

template <class Base, class Matrix, class Which = last_weights>
with_neighbours(Base, Matrix, Which = {}) -> with_neighbours<Base, Matrix, Which>;

}  // namespace heed::score
