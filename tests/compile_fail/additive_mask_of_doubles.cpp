// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this additive mask has a different number type
#include <heed/heed.hpp>

using namespace heed;

auto use(const attention<score::scaled_dot, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 4>& q, const array<double, 2>& bias)
{
    return attend(attend.on(q), q, causal{} & additive_mask{bias});
}
