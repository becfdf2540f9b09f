// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: these tensors have different element types, such as float and double
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<double, 2>& W, const array<double, 2>& U, const array<double, 1>& v,
         const array<float, 3>& annotations, const array<float, 2>& query)
{
    const attention attend{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory)).context;
}
