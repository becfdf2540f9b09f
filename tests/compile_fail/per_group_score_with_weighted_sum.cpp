// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: this score and this combiner do not fit: .* a score per group with combine::grouped_sum
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 2>& W)
{
    return attention{score::additive_grouped{W, W, W}, normalize::softmax{}, combine::weighted_sum{}};
}
