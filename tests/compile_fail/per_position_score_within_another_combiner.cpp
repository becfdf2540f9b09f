// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: this score and this combiner do not fit: .* combine::gated take one of these inside
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 2>& W)
{
    return attention{score::dot{}, normalize::softmax{}, combine::attentional{W, combine::elementwise_sum{}}};
}
