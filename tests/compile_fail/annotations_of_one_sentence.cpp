// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: attention::on takes annotations .B,T,D.
//
// In any mechanism and call: no other error follows.
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 2>& sentence, const array<float, 3>& right, const array<float, 2>& query,
         const array<float, 2>& W)
{
    const attention one{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const multi_head several{std::vector(2, one), W, W, W, W};
    const latent_heads latent{2, W, W, W, W, W, W, W};
    (void)several.step(several.on(sentence), query, several.start(several.on(sentence)));
    (void)latent.step(latent.on(sentence), query, latent.start(latent.on(sentence)));
    (void)one.on(right, sentence);
    (void)one.extend(with_cache(one.on(right)), sentence, lengths{1});
    const auto memory = one.extend(one.on(sentence, lengths{3}), sentence);
    return one.step(memory, query, one.start(memory)).context;
}
