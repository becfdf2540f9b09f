// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a score policy with `project` must have `match` as well
#include <heed/heed.hpp>

// Without the check, the query would be projected twice.
struct score {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
    auto project(const heed::tensor auto& query) const { return heed::ops::scale(query, 2); }
    auto mach(const heed::tensor auto& projected, const heed::tensor auto& keys) const
    {
        return heed::ops::dot_per_position(projected, keys);
    }
    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        return mach(project(query), keys);
    }
    static auto parameters(auto&, auto&&) { return score{}; }
};

const heed::attention attend{score{}, heed::normalize::softmax{}, heed::combine::weighted_sum{}};
