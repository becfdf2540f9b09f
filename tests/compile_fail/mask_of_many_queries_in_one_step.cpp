// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: the mask of one query is a boolean_mask<2>, an additive_mask of a tensor .B,T., or lengths
#include <heed/heed.hpp>

using namespace heed;

auto use(const attention<score::dot, normalize::softmax, combine::weighted_sum>& attend, const boolean_mask<3>& mask,
         const array<float, 3>& annotations, const array<float, 2>& query)
{
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory), mask);
}
