// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this is a memory of heads: `step` and `read` take one query per head, .B,H,d.
#include <heed/heed.hpp>

using namespace heed;

auto use(const attention<score::scaled_dot, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 4>& keys, const array<float, 3>& queries)
{
    return attend(attend.on(keys), queries);
}
