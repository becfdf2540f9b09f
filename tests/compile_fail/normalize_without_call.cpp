// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a normalize policy must be callable: add `auto operator..\(const heed::tensor auto& scores
#include <heed/heed.hpp>

struct normalize {
    static auto parameters(auto&, auto&&) { return normalize{}; }
};

const heed::attention attend{heed::score::dot{}, normalize{}, heed::combine::weighted_sum{}};
