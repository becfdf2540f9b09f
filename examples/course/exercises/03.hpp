// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/softmax.hpp>
#include <heed/ops/sums.hpp>
#include <heed/policy/concepts.hpp>

namespace mine {

/// Exercise a: the dot product minus half the squared length of the annotation.
///
///     e_j = q · h_j - ½ |h_j|²
///
/// Useful operations: ops::dot_per_position(query, keys), ops::square(x), ops::sum_last(x), ops::scale(x, factor),
/// ops::subtract(x, y).
struct dot_less_length {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};

    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const  // [B,D], [B,T,D] -> [B,T]
    {
        using namespace heed;
        return ops::dot_per_position(query, keys);  // incomplete
    }

    static auto parameters(auto&, auto&&) { return mine::dot_less_length{}; }
};

/// Exercise b: the softmax of scores that are limited to (-most, most).
///
///     α = softmax(c tanh(e / c)),  c = most
///
/// at.visible(x) is x with minus infinity at hidden positions; at.real are the lengths of the sentences.
struct capped {
    double most = 2;  // c

    auto operator()(const heed::tensor auto& scores, const auto&, const auto& at) const  // [B,T] -> [B,T]
    {
        using namespace heed;
        return ops::softmax(at.visible(scores), at.real);  // no cap yet
    }

    static auto parameters(auto& self, auto&&) { return mine::capped{self.most}; }
};

}  // namespace mine
