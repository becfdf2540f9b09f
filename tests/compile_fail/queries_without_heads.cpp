// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this memory is that of heads: one query of each is .B,H,d.
#include <heed/heed.hpp>

using namespace heed;

auto use(const attention<score::scaled_dot, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 4>& keys, const array<float, 3>& queries)
{
    return attend(attend.on(keys), queries);
}
