// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: attention of many queries takes queries .B,S,Q.
#include <heed/heed.hpp>

using namespace heed;

auto use(const attention<score::scaled_dot, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 3>& keys, const array<float, 4>& queries)
{
    return attend(attend.on(keys), queries);
}
