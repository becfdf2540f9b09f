// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: attention of many queries takes queries .B,S,Q.
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& annotations, const array<float, 2>& query)
{
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    return attend(attend.on(annotations), query);
}
