// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: a single truth value is not a mask; if f is a lambda, `!f` is a truth value in C..: write
// `!mask_mod.f.`
#include <heed/heed.hpp>

auto use(const heed::array<float, 3>& annotations)
{
    const heed::attention attend{heed::score::dot{}, heed::normalize::softmax{}, heed::combine::weighted_sum{}};
    const auto near = [](heed::score_index p) { return p.key < 5; };
    return attend(attend.on(annotations), annotations, !near);
}
