// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: combine::delta_rule corrects values by inner products of keys
#include <heed/heed.hpp>

using namespace heed;

auto make(array<float, 2> w, array<float, 1> b)
{
    return attention{score::dot{}, normalize::softmax{}, combine::delta_rule{w, b}};
}
