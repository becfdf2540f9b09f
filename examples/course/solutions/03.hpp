// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/softmax.hpp>
#include <heed/ops/sums.hpp>
#include <heed/policy/concepts.hpp>

namespace mine {

/// -½ |q - h|² = q · h - ½ |h|² - ½ |q|². The last term is the same for every word. The softmax does not change if the
/// same number is added to all scores, so |q|² may be dropped.
struct dot_less_length {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};

    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const  // [B,D], [B,T,D] -> [B,T]
    {
        using namespace heed;
        return ops::subtract(ops::dot_per_position(query, keys), ops::scale(ops::sum_last(ops::square(keys)), 0.5));
    }

    static auto parameters(auto&, auto&&) { return mine::dot_less_length{}; }
};

/// First the cap, then the mask: tanh of minus infinity is -1, so a hidden word would get a share.
struct capped {
    double most = 2;  // c

    auto operator()(const heed::tensor auto& scores, const auto&, const auto& at) const  // [B,T], the same
    {
        using namespace heed;
        return ops::softmax(at.visible(ops::scale(ops::tanh(ops::scale(scores, 1 / most)), most)), at.real);
    }

    static auto parameters(auto& self, auto&&) { return mine::capped{self.most}; }
};

}  // namespace mine
