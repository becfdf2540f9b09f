// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: multi_head returns one weight for each head and position, .B,n,T.: its heads need a score per position
#include <heed/heed.hpp>

#include <tuple>

using namespace heed;

auto use(const array<float, 2>& W, const array<float, 3>& annotations)
{
    const attention head{score::additive_per_dimension{W, W, W}, normalize::softmax{}, combine::elementwise_sum{}};
    return multi_head{std::tuple{head, head}, W, W, W, W}.on(annotations);
}
