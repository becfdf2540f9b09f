// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: keys of heads, .B,G,T,d., need values of heads
#include <heed/heed.hpp>

using namespace heed;

auto use(const attention<score::scaled_dot, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 4>& keys, const array<float, 3>& values)
{
    return attend.on(keys, values);
}
