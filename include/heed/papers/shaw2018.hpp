// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/relative.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/relative.hpp>
#include <heed/score/scaled_dot.hpp>

/// Shaw, Uszkoreit, Vaswani 2018, "Self-Attention with Relative Position Representations".
namespace heed::papers::shaw2018 {

/// Scaled dot products of queries with keys and with their distance, one of the heads of an encoder or a decoder.
///
///     e_ij = q_i · (k_j + a_{clip(j − i, −R, R)}) / √d                eq. 4 and 5
///
/// `distances` [d, 2R + 1] has a column a_r for each distance. Without the vectors that eq. 3 adds to the values.
template <class Matrix>
auto relative(Matrix distances)
{
    return attention{score::relative{score::scaled_dot{}, std::move(distances)}, normalize::softmax{},
                     combine::weighted_sum{}};
}

/// The same with vectors for the values, the whole of the paper's equations.
///
///     z_i = Σ_j α_ij (v_j + a_{clip(j − i, −R, R)})                   eq. 3
///
/// `of_values` [2R + 1, D] has a row for each distance.
template <class Matrix, class Rows>
auto relative(Matrix distances, Rows of_values)
{
    return attention{score::relative{score::scaled_dot{}, std::move(distances)}, normalize::softmax{},
                     combine::relative{std::move(of_values)}};
}

}  // namespace heed::papers::shaw2018
