// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: combine::relative needs the distance of each position from the query, which a window does not provide
#include <heed/heed.hpp>

using namespace heed;

auto ask(array<float, 2> query, array<float, 3> annotations, array<float, 2> distances)
{
    const attention attend{score::dot{}, normalize::local_m{10}, combine::relative{distances}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory)).context;
}
