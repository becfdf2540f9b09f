// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: score::contextual_positions compares the query with both keys and positions, by inner products
#include <heed/heed.hpp>

using namespace heed;

auto ask(array<float, 3> annotations, array<float, 2> W, array<float, 1> v)
{
    const attention attend{score::contextual_positions{score::additive{W, W, v}, W}, normalize::softmax{},
                           combine::weighted_sum{}};
    return attend.on(annotations).keys;
}
