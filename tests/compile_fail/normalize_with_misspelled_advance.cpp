// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a normalize policy with a state must have both `start.blank.` and `advance
#include <heed/heed.hpp>

struct normalize {
    auto start(auto&& blank) const { return heed::normalize::temporal{}.start(blank); }
    auto operator()(const heed::tensor auto& scores, const auto& state, const auto& at) const
    {
        return heed::normalize::temporal{}(scores, state, at);
    }
    auto advence(const heed::tensor auto& scores, const heed::tensor auto& weights, const auto& state,
                 const auto& at) const
    {
        return heed::normalize::temporal{}.advance(scores, weights, state, at);
    }
    static auto parameters(auto&, auto&&) { return normalize{}; }
};

const heed::attention attend{heed::score::dot{}, normalize{}, heed::combine::weighted_sum{}};
