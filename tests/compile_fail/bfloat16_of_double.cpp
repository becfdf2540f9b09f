// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: tiles in bfloat16 support only tensors of float
#include <heed/ops/tiles_in_bfloat16.hpp>

using namespace heed;

auto use(const array<double, 3>& q)
{
    return ops::attend_tiled_in_bfloat16(q, q, q, lengths::full(q.shape()[0], q.shape()[1]), ops::heads_of{});
}
