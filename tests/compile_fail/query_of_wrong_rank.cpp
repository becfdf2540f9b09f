// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: one query is .B,Q., a row for each sentence
//
// In any mechanism and call: no other error follows.
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& x, const array<float, 1>& query, const array<float, 2>& word, const array<float, 2>& W)
{
    const attention one{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const multi_head several{std::vector(2, one), W, W, W, W};
    const talking_heads talking{several, W, W};
    const latent_heads latent{2, W, W, W, W, W, W, W};
    const auto ask = [&](const auto& attend, const auto& with) {
        const auto memory = attend.on(x);
        const auto state = attend.start(memory);
        auto result = attend.step(memory, with, state);
        attend.step_into(result, memory, with, state);
        return attend.read(memory, with, state).context;
    };
    (void)one.compose(one.on(x), query, one.start(one.on(x)));
    (void)ask(attention{score::with_word{score::dot{}, W}, normalize::softmax{}, combine::weighted_sum{}},
              state_and_word{x, word});
    return ops::add(ops::add(ask(one, query), ask(several, query)), ops::add(ask(talking, query), ask(latent, query)));
}
