// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a score policy must be callable: add `auto operator..\(const heed::tensor auto& query
#include <heed/heed.hpp>

struct score {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
    static auto parameters(auto&, auto&&) { return score{}; }
};

const heed::attention attend{score{}, heed::normalize::softmax{}, heed::combine::weighted_sum{}};
