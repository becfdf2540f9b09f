// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: an additive mask is .S,T., .B,S,T. or .B,H,S,T.
#include <heed/heed.hpp>

using namespace heed;

auto use(const attention<score::scaled_dot, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 4>& q, const array<float, 1>& bias)
{
    return attend(attend.on(q), q, additive_mask{bias});
}
