// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this is not a mask: give lengths, present, a boolean_mask, an additive_mask, causal
#include <heed/heed.hpp>

using namespace heed;

auto use(const attention<score::scaled_dot, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 4>& q)
{
    return attend(attend.on(q), q, [](int query, int key) { return key <= query; });
}
