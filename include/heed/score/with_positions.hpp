// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include <heed/core/growing.hpp>
#include <heed/ops/broadcast.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/rows.hpp>
#include <heed/score/over.hpp>

namespace heed::ops {

/// y = x with one column set to a number: x [B,T,N] -> [B,T,N].          ∂x += ∂y in the other columns
struct with_column_op : move_operation<with_column_op, std::size_t, double> {
    static constexpr ranks takes{3, 3};

    static auto shape(const auto& x, std::size_t column, double)
    {
        if (column >= x.shape[2]) {
            throw shape_error("with_column: column " + std::to_string(column) + " of " + shape_text(x.shape) +
                              "; columns count from 0");
        }
        return x.shape;
    }

    static double fill(std::size_t, double value) { return value; }

    static void each_move(const auto& x, std::size_t column, double, auto move)
    {
        const std::size_t N = x[2], after = N - column - 1;
        for (std::size_t i = 0; i < x[0] * x[1] * N; i += N) {
            move(i, i, column);
            move.nothing(i + column, 1);
            move(i + column + 1, i + column + 1, after);
        }
    }
};
inline constexpr with_column_op with_column{};

}  // namespace heed::ops

namespace heed::score {

/// A score that also reads the target position t, the source position j and the source length I (position bias).
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + P ψ_{t,j})
///     ψ_{t,j} = [log(1+t), log(1+j), log(1+I)]                 Cohn et al. 2016
///
/// P ψ is added to the keys of any base score: inside the tanh, as in Cohn's paper (see `with_neighbours`, whose two
/// biases belong to the same model). t and j count from 1; I is the length given to `attend.on`, whatever a mask
/// hides; of a memory that grows it is how many positions there are so far.
template <class Base, class Matrix>
struct with_positions : over::another<with_positions<Base, Matrix>, Base> {
    using over::another<with_positions<Base, Matrix>, Base>::base;
    Matrix P;  // [3,A], for t, j, I

    // [B,T,3] ψ of the first step: it has no parameter and no gradient.
    auto begin(const auto& memory) const
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

    auto arrive(const auto& past, const auto& at) const  // log(1+t) of this step
    {
        return score::position_features{
            ops::with_column(past.features, 0, std::log(2.0 + static_cast<double>(at.step)))};
    }

    /// Of a memory that has grown: I is another one for all positions.
    auto grow(const auto& past, const auto& begun, const auto& join, const auto& at) const
    {
        return arrive(score::position_features{join.all_of_second(past.features, begun.features)}, at);
    }

    auto keys(const tensor auto& plain_keys, const auto& past) const  // k + P ψ
    {
        return ops::linear_onto(plain_keys, past.features, P);
    }

    auto after(const auto& past, const tensor auto&, const tensor auto&, const auto&) const { return past.own(); }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_positions{visit("base", self.base), visit("P", self.P)};
    }
};

template <class Base, class Matrix>
with_positions(Base, Matrix) -> with_positions<Base, Matrix>;

}  // namespace heed::score
