// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: the score's result has the wrong rank: a score per position gives .B,T.
#include <heed/heed.hpp>

using namespace heed;

struct score_of_batch {
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& query, const tensor auto& keys) const
    {
        return ops::multiply_per_position(keys, query);  // [B,T,D], but declared as [B,T]
    }
    static auto parameters(auto&, auto&&) { return score_of_batch{}; }
};

auto use(const array<float, 3>& annotations, const array<float, 2>& query)
{
    const attention attend{score_of_batch{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory));
}
