// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a window does not know its position inside another window: make the outer normalizer the window
#include <heed/heed.hpp>

using namespace heed;

auto ask(array<float, 2> query, array<float, 3> annotations)
{
    const attention attend{score::dot{}, normalize::local_m{10, normalize::local_m{2}}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory)).context;
}
