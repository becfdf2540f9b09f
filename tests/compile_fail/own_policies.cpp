// SPDX-License-Identifier: BSD-3-Clause
// expect-ok
//
// A control: complete user policies. The neighboring cases each omit one part.
#include <heed/heed.hpp>

namespace mine {

template <class Matrix>
struct score {
    Matrix W;
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        return heed::ops::dot_per_position(heed::ops::linear(query, W), keys);
    }
    static auto parameters(auto& self, auto&& visit) { return mine::score{visit("W", self.W)}; }
};
template <class Matrix>
score(Matrix) -> score<Matrix>;

struct normalize {
    auto operator()(const heed::tensor auto& scores, const auto& at) const
    {
        return heed::ops::softmax(scores, at.real);
    }
    static auto parameters(auto&, auto&&) { return mine::normalize{}; }
};

struct combine {
    static constexpr heed::combiner_traits traits{.weights = heed::weight_kind::per_position};
    auto operator()(const heed::tensor auto& weights_of_positions, const heed::tensor auto& values) const
    {
        return heed::ops::weighted_sum(weights_of_positions, values);
    }
    static auto parameters(auto&, auto&&) { return mine::combine{}; }
};

}  // namespace mine

auto use(const heed::array<float, 3>& annotations, const heed::array<float, 2>& query, const heed::array<float, 2>& W)
{
    const heed::attention attend{mine::score{W}, mine::normalize{}, mine::combine{}};
    const auto memory = attend.on(annotations);
    heed::ad::tape<float> on;
    const auto taped = heed::ad::lift(on, attend);
    (void)taped.step(taped.on(annotations), query, taped.start(taped.on(annotations)));
    return attend.step(memory, query, attend.start(memory)).context;
}
