// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: score::forgetting and score::gated_decay do not wrap each other: use one
#include <heed/heed.hpp>

using namespace heed;

auto ask(array<float, 3> annotations, array<float, 2> w, array<float, 1> b)
{
    const attention attend{score::gated_decay{score::forgetting{score::dot{}, w, b}, w, b}, normalize::retention{},
                           combine::weighted_sum{}};
    return attend.on(annotations).keys;
}
