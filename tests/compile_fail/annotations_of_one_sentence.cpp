// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: attention::on takes annotations .B,T,D.
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 2>& annotations)
{
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    return attend.on(annotations, lengths{3});
}
