// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a combine policy must be callable: add `auto operator..\(const heed::tensor auto& weights
#include <heed/heed.hpp>

struct combine {
    static constexpr heed::combiner_traits traits{.weights = heed::weight_kind::per_position};
    static auto parameters(auto&, auto&&) { return combine{}; }
};

const heed::attention attend{heed::score::dot{}, heed::normalize::softmax{}, combine{}};
