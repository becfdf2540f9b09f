// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: pass the numbers of real positions as `lengths`
#include <heed/heed.hpp>

#include <vector>

using namespace heed;

auto use(const array<float, 2>& W, const array<float, 2>& U, const array<float, 1>& v,
         const array<float, 3>& annotations, const array<float, 2>& query)
{
    const attention attend{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations, std::vector<std::size_t>{3, 2});
    return attend.step(memory, query, attend.start(memory)).context;
}
