// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a score policy with `start` has a state: it must have `match
#include <heed/heed.hpp>

// Without the check, the state would keep its value from before the first query.
struct score {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
    auto start(const auto&) const { return heed::no_score_state{}; }
    auto match(const heed::tensor auto& query, const heed::tensor auto& keys, const auto&) const
    {
        return heed::ops::dot_per_position(query, keys);
    }
    auto advanse(const auto& state, const heed::tensor auto&, const auto&) const { return state; }
    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys, const auto& state) const
    {
        return match(query, keys, state);
    }
    static auto parameters(auto&, auto&&) { return score{}; }
};

const heed::attention attend{score{}, heed::normalize::softmax{}, heed::combine::weighted_sum{}};
