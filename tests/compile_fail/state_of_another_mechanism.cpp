// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this state belongs to another mechanism: continue from a state that this mechanism's `start`
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& x, const array<float, 2>& query, const array<float, 2>& W)
{
    const attention one{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const attention temporal{score::dot{}, normalize::temporal{}, combine::weighted_sum{}};
    const multi_head several{std::vector(2, one), W, W, W, W};
    const latent_heads latent{2, W, W, W, W, W, W, W};
    const auto state = one.start(one.on(x));
    const auto states = several.start(several.on(x));
    (void)temporal.step(temporal.on(x), query, state).context;
    (void)one.step(one.on(x), query, states).context;
    (void)several.step(several.on(x), query, state).context;
    return latent.step(latent.on(x), query, states).context;
}
