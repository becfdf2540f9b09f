// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: one truth value is no mask; C.. makes one of `!f` where f is a lambda: write `!mask_mod.f.`
#include <heed/heed.hpp>

auto use(const heed::array<float, 3>& annotations)
{
    const heed::attention attend{heed::score::dot{}, heed::normalize::softmax{}, heed::combine::weighted_sum{}};
    const auto near = [](heed::score_index p) { return p.key < 5; };
    return attend(attend.on(annotations), annotations, !near);
}
