// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this memory belongs to several heads or hops: pass it to the mechanism whose `on` made it
// expect: heed: this is not a memory of several heads: pass a memory that this mechanism's `on` made
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& x, const array<float, 2>& query, const array<float, 2>& W)
{
    const attention one{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const multi_head several{std::vector(2, one), W, W, W, W};
    (void)one.step(several.on(x), query, one.start(one.on(x))).context;
    return several.step(one.on(x), query, several.start(several.on(x))).context;
}
