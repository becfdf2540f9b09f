// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/ops/products.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/windows.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y[b,t,i] = x[b,t+i-k], each position with its neighbors, 0 beyond the sentence: x [B,T] -> [B,T,2k+1].
///
///     ∂x[b,t+i-k] += ∂y[b,t,i]
struct neighborhood_op : move_operation<neighborhood_op, std::size_t> {
    static constexpr ranks takes{2, 2};

    static shape_of_rank<3> shape(const auto& x, std::size_t reach) { return {x.shape[0], x.shape[1], 2 * reach + 1}; }

    static void each_move(const auto& x, std::size_t reach, auto move)
    {
        const std::size_t width = 2 * reach + 1;
        move.nothing(0, x[0] * x[1] * width);
        for (std::size_t b = 0; b < x[0]; ++b) {
            for (std::size_t t = 0; t < x[1]; ++t) {
                const auto near = position_range::around(t, reach, x[1]);
                move(b * x[1] + near.first, (b * x[1] + t) * width + near.first + reach - t, near.count);
            }
        }
    }
};
inline constexpr neighborhood_op neighborhood{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::score {

/// Makes `with_neighbors` read the weights of the last step, α_{t−1}.
struct last_weights {};
/// Makes `with_neighbors` read the sum of all past weights, Σ_{i<t} α_i.
struct all_weights {};

/// A score that also reads the past weights of position j and its k neighbors on either side.
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + M ξ_{t,j})              Cohn et al. 2016
///     ξ_{t,j} = [α_{t−1,j−k} … α_{t−1,j+k}]                     last_weights: the Markov condition
///     ξ_{t,j} = [Σ_{i<t} α_{i,j−k} … Σ_{i<t} α_{i,j+k}]         all_weights: local fertility
///
///     score::with_neighbors{score::with_neighbors{base, M, score::last_weights{}}, M_f, score::all_weights{}}
///
/// M ξ is added to the keys of any base score: inside the tanh, as in Cohn's paper; Sankaran et al. 2016, §5, have
/// "extra components to the pre-normalized attention". Weights before the first step and beyond the sentence are 0. The
/// paper's global fertility and bilingual symmetry are terms of a loss. Ours: for weights per dimension, α is their
/// mean. Throws shape_error unless M has an odd number of rows.
template <class Base, class Matrix, class Which = last_weights>
struct with_neighbors : over::score_adaptor<with_neighbors<Base, Matrix, Which>, Base> {
    using over::score_adaptor<with_neighbors<Base, Matrix, Which>, Base>::base;
    Matrix M;  // [2k+1,A]
    HEED_NO_UNIQUE_ADDRESS Which which{};

    static constexpr score_traits traits =
        traits_around_score<Base>([](score_traits& own) { own.needs_all_positions = true; });

    auto init_state(const auto& memory) const
    {
        const std::size_t rows = shape_of(M)[0];
        if (rows % 2 == 0) {
            throw shape_error("with_neighbors: M is " + shape_text(shape_of(M)) +
                              ", but must have an odd number of rows, 2k + 1: a position and k neighbors on each side");
        }
        const shape_of_rank<3> shape{memory.batch(), memory.positions(), rows};
        return score::position_features{constant_like(over::taped_among(memory.keys, M), shape, 0.0)};
    }

    auto keys(const tensor auto& plain_keys, const auto& state) const  // k + M ξ
    {
        return ops::addmm(plain_keys, state.features, M);
    }

    auto update_state(const auto& state, const tensor auto& seen, const tensor auto&, const auto&) const
    {
        auto now = ops::neighborhood(over::per_position(seen), shape_of(M)[0] / 2);
        if constexpr (std::is_same_v<Which, all_weights>) {
            return score::position_features{ops::add_same_shape(state.features, now)};
        } else {
            return score::position_features{std::move(now)};
        }
    }

    /// For a memory that has grown: new positions have no previous weight, but their neighbors do.
    auto grow(const auto& state, const auto& begun, const auto& join, const auto&) const
    {
        const auto features = join(state.features, begun.features);
        const auto [B, T, width] = shape_of(features);
        const auto own = ops::slice_columns(features, width / 2, width / 2 + 1);  // the position itself
        return score::position_features{ops::neighborhood(ops::reshaped(own, B, T), width / 2)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_neighbors{visit("base", self.base), visit("M", self.M), self.which};
    }
};

template <class Base, class Matrix, class Which = last_weights>
with_neighbors(Base, Matrix, Which = {}) -> with_neighbors<Base, Matrix, Which>;

}  // namespace heed::inline HEED_TARGET::score
