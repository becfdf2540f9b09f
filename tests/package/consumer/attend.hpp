// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/heed.hpp>

/// One step of additive attention over two of three positions; the result depends on all inputs.
inline float attend_once()
{
    using namespace heed;
    array<float, 2> W(shape_of_rank<2>{2, 4}, 0.5f);   // [Q,A]
    array<float, 2> U(shape_of_rank<2>{3, 4}, 0.25f);  // [D,A]
    array<float, 1> v(shape_of_rank<1>{4}, 1.0f);      // [A]

    array<float, 3> annotations(shape_of_rank<3>{1, 3, 3}, 0.5f);  // [B,T,D]
    annotations(0, 1, 2) = 2.0f;
    array<float, 2> query(shape_of_rank<2>{1, 2}, 1.0f);  // [B,Q]

    attention attend{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    auto memory = attend.on(annotations, lengths{2});
    auto state = attend.start(memory);
    auto [context, weights, next] = attend.step(memory, query, state);
    return context(0, 2) + weights(0, 1);
}
