// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: `causal{}` and other predicate masks are for many queries, `attend.memory, queries, causal{}.`
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& annotations, const array<float, 2>& query)
{
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory), [](score_index p) { return p.key < 5; }).context;
}
