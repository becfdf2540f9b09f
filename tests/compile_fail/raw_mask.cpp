// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this is not a mask: wrap truth values .true = attend. in boolean_mask{x}
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 2>& W, const array<float, 2>& U, const array<float, 1>& v,
         const array<float, 3>& annotations, const array<float, 2>& query, const array<bool, 2>& mask)
{
    const attention attend{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory), mask).context;
}
