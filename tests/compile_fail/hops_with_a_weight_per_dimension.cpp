// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: multi_hop returns one weight for each hop and position, .B,K,T.: its hops need a score per position
#include <heed/heed.hpp>

#include <vector>

using namespace heed;

auto use(const array<float, 2>& W, const array<float, 2>& query, const array<float, 3>& annotations)
{
    const attention hop{score::additive_per_dimension{W, W, W}, normalize::softmax{}, combine::elementwise_sum{}};
    const multi_hop attend{std::vector{hop, hop}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory));
}
