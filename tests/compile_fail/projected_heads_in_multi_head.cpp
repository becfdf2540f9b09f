// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: heads that are already projected, .B,H,T,d., are for the `on` and `extend` of an attention
#include <heed/heed.hpp>

using namespace heed;

auto use(const multi_head<std::vector<attention<score::scaled_dot, normalize::softmax, combine::weighted_sum>>,
                          array<float, 2>>& attend,
         const array<float, 4>& keys)
{
    return attend.on(keys, keys);
}
