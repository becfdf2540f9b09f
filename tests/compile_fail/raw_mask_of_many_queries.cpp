// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this is not a mask: wrap truth values .true = attend. in boolean_mask{x}
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& annotations, const array<float, 3>& mask)
{
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend(memory, annotations, mask);
}
