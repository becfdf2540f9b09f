// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a combine policy must declare the kind of its weights: add `static constexpr heed::combiner_traits
#include <heed/heed.hpp>

struct combine {
    auto operator()(const heed::tensor auto& weights, const heed::tensor auto& values) const
    {
        return heed::ops::weighted_sum(weights, values);
    }
    static auto parameters(auto&, auto&&) { return combine{}; }
};

const heed::attention attend{heed::score::dot{}, heed::normalize::softmax{}, combine{}};
