// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: the score returns an array, but must return tensors of the same kind as its arguments: heed::constant
#include <heed/heed.hpp>

using namespace heed;

struct score_of_nothing {
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto&, const tensor auto& keys) const
    {
        return filled<float, 2>({shape_of(keys)[0], shape_of(keys)[1]}, 0.0f);  // though keys are in the workspace
    }
    static auto parameters(auto&, auto&&) { return score_of_nothing{}; }
};

auto use(const array<float, 3>& annotations, const array<float, 2>& query)
{
    const attention attend{score_of_nothing{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory));
}
