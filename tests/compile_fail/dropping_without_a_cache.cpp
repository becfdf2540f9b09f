// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: memory::without_oldest: only a KV cache drops positions: with_cache.memory.
//
// A memory without a cache would be copied each time.
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& annotations)
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    return attend.on(annotations).without_oldest(1);
}
