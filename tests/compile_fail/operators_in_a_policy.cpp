// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: xtensor's functions and operators do not support workspace or taped tensors: in a policy use
#include <heed/heed.hpp>

namespace mine {

template <class Matrix>
struct score {
    Matrix W;
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        return heed::ops::dot_per_position(2.0f * heed::ops::linear(query, W) + query, keys);
    }
    static auto parameters(auto& self, auto&& visit) { return mine::score{visit("W", self.W)}; }
};
template <class Matrix>
score(Matrix) -> score<Matrix>;

}  // namespace mine

auto use(const heed::array<float, 2>& W, const heed::array<float, 3>& annotations, const heed::array<float, 2>& query)
{
    const heed::attention attend{mine::score{W}, heed::normalize::softmax{}, heed::combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory)).context;
}
