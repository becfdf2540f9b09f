// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>

#include <heed/core/cache_tensor.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET::score {

/// A score that also reads the target position t, the source position j and the source length I (position bias).
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + P ψ_{t,j})
///     ψ_{t,j} = [log(1+t), log(1+j), log(1+I)]                 Cohn et al. 2016
///
/// P ψ is added to the keys of any base score, inside the tanh as in the paper. t and j count from 1. I is the length
/// given to `attend.on`, regardless of masks, or in a KV cache the current number of positions. score::with_neighbors
/// has the paper's other two biases.
template <class Base, class Matrix>
struct with_positions : over::score_adaptor<with_positions<Base, Matrix>, Base> {
    using over::score_adaptor<with_positions<Base, Matrix>, Base>::base;
    Matrix P;  // [3,A], for t, j, I

    static constexpr score_traits traits =
        traits_around_score<Base>([](score_traits& own) { own.needs_all_positions = true; });

    auto init_state(const auto& memory) const  // ψ of the first step: no parameter, no gradient
    {
        using T = element_of<decltype(memory.keys)>;
        const std::size_t B = memory.batch(), positions = memory.positions();
        auto features = filled<T, 3>({B, positions, 3}, static_cast<T>(std::log(2.0)));
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t j = 0; j < positions; ++j) {
                T* const psi = features.data() + (b * positions + j) * 3;
                psi[1] = static_cast<T>(std::log(2.0 + static_cast<double>(j)));
                psi[2] = static_cast<T>(std::log(1.0 + static_cast<double>(memory.real[b])));
            }
        }
        return score::position_features{same_family(over::taped_among(memory.keys, P), std::move(features))};
    }

    auto observe_query(const auto& state, const auto& at) const  // log(1+t) of this step
    {
        const auto [B, T, three] = shape_of(state.features);
        const auto of_step =
            constant_like(state.features, shape_of_rank<3>{B, T, 1}, std::log(2.0 + static_cast<double>(at.step)));
        return score::position_features{ops::concat(of_step, ops::slice_columns(state.features, 1, three))};
    }

    /// For a memory that has grown: I changes for all positions.
    auto grow(const auto& state, const auto& begun, const auto& join, const auto& at) const
    {
        return observe_query(score::position_features{join.all_of_second(state.features, begun.features)}, at);
    }

    auto keys(const tensor auto& plain_keys, const auto& state) const  // k + P ψ
    {
        return ops::addmm(plain_keys, state.features, P);
    }

    auto update_state(const auto& state, const tensor auto&, const tensor auto&, const auto&) const
    {
        return state.own();
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_positions{visit("base", self.base), visit("P", self.P)};
    }
};

template <class Base, class Matrix>
with_positions(Base, Matrix) -> with_positions<Base, Matrix>;

}  // namespace heed::inline HEED_TARGET::score
