// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: this score and this combiner do not fit: a score per position goes with combine::weighted_sum
#include <heed/heed.hpp>

using namespace heed;

auto make(array<float, 2> W, array<float, 2> U, array<float, 2> V)
{
    return attention{score::additive_per_dimension{W, U, V}, normalize::softmax{}, combine::weighted_sum{}};
}
