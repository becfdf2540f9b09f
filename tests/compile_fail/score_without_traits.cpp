// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a score policy must declare the kind of its scores: add `static constexpr heed::score_traits traits
#include <heed/heed.hpp>

struct score {
    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        return heed::ops::dot_per_position(query, keys);
    }
    static auto parameters(auto&, auto&&) { return score{}; }
};

const heed::attention attend{score{}, heed::normalize::softmax{}, heed::combine::weighted_sum{}};
