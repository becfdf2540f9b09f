// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: latent_heads::step takes lengths or a boolean_mask .B,T.; causal{} and predicate masks
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 2>& W, const array<float, 3>& annotations, const array<float, 2>& query)
{
    const latent_heads attend{2, W, W, W, W, W, W, W};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory), causal{}).context;
}
