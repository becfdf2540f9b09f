// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: a std::vector is not a tensor: store its numbers in a `heed::array<float, 1>`
#include <heed/heed.hpp>

#include <vector>

using namespace heed;

auto use(const array<float, 2>& W, const array<float, 2>& U, const std::vector<float>& v,
         const array<float, 3>& annotations, const array<float, 2>& query)
{
    const attention attend{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory)).context;
}
