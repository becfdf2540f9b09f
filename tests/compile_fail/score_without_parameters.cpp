// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a score policy must list its parameters: .* `static auto parameters.auto& self
#include <heed/heed.hpp>

struct score {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        return heed::ops::dot_per_position(query, keys);
    }
};

const heed::attention attend{score{}, heed::normalize::softmax{}, heed::combine::weighted_sum{}};
