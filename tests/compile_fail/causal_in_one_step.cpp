// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: `causal{}` and other predicate masks are for many queries, `attend.memory, queries, causal{}.`
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 2>& W, const array<float, 3>& annotations, const array<float, 2>& query)
{
    const latent_heads attend{2, W, W, W, W, W, W, W};  // place_in_one_step asks an attention
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory), causal{}).context;
}
