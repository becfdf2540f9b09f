// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: a memory of concatenated heads cannot be extended: begin with `with_cache.memory.`
#include <heed/heed.hpp>

using namespace heed;

auto use(const attention<score::scaled_dot, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 3>& keys, const array<float, 3>& values)
{
    const auto memory = attend.on(split_heads(keys, 2), split_heads(values, 2));
    attend.extend(memory, split_heads(keys, 2), split_heads(values, 2));
}
