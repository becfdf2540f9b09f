// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a normalize policy must list its parameters: .* `static auto parameters.auto& self
#include <heed/heed.hpp>

struct normalize {
    auto operator()(const heed::tensor auto& scores, const auto& at) const
    {
        return heed::ops::softmax(scores, at.real);
    }
};

const heed::attention attend{heed::score::dot{}, normalize{}, heed::combine::weighted_sum{}};
