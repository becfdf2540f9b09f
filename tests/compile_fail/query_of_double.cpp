// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: the query and the memory have different element types, such as double and float
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 2>& W, const array<float, 2>& U, const array<float, 1>& v,
         const array<float, 3>& annotations, const array<double, 2>& query)
{
    const attention attend{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory)).context;
}
