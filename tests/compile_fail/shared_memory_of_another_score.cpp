// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a shared_memory is asked by step, read, .* others need a memory with a row for
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& annotations, const array<float, 2>& queries)
{
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    const shared_memory shared(memory, {0, 0, 0});  // dot has no kernel that shares
    return attend.step(shared, queries, attend.start(shared));
}
