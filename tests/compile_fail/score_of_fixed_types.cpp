// SPDX-License-Identifier: BSD-3-Clause
// expect: must list its parameters: make it a template .* return mine::policy.visit
#include <heed/heed.hpp>

namespace mine {

struct score {
    heed::array<float, 2> W;  // cannot be a variable on a tape
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        return heed::ops::dot_per_position(heed::ops::linear(query, W), keys);
    }
    static auto parameters(auto& self, auto&& visit) { return mine::score{visit("W", self.W)}; }
};

}  // namespace mine

auto use(heed::array<float, 2> W)
{
    return heed::attention{mine::score{W}, heed::normalize::softmax{}, heed::combine::weighted_sum{}};
}
