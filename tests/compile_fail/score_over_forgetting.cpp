// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: this score adds to keys or queries, and its base's keys have extra columns: wrap it in
#include <heed/heed.hpp>

using namespace heed;

auto ask(array<float, 3> annotations, array<float, 2> w, array<float, 1> b)
{
    const attention attend{score::rotary{score::forgetting{score::dot{}, w, b}}, normalize::softmax{},
                           combine::weighted_sum{}};
    return attend.on(annotations).keys;
}
