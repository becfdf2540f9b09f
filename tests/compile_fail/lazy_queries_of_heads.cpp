// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this is a lazy xtensor expression .* store it first, as in `heed::array<float, 2> x = a . b;`
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 2>& W, const array<float, 3>& annotations)
{
    const attention one{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const multi_head attend{std::vector(2, one), W, W, W, W};
    const auto memory = attend.on(annotations);
    return attend(memory, annotations * 2.0f);
}
