// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: attention of many queries takes queries .B,S,Q.
//
// In any mechanism and call: no other error follows.
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& x, const array<float, 2>& query, const array<float, 2>& W)
{
    const attention one{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const multi_head several{std::vector(2, one), W, W, W, W};
    const talking_heads talking{several, W, W};
    const latent_heads latent{2, W, W, W, W, W, W, W};
    const auto ask = [&](const auto& attend) {
        const auto memory = attend.on(x);
        (void)attend.weights_of(memory, query);
        (void)attend.read_all(memory, query, attend.start(memory));
        return attend(memory, query);
    };
    return ops::add(ops::add(ask(one), ask(several)), ops::add(ask(talking), ask(latent)));
}
