// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a combine policy must list its parameters: .* `static auto parameters.auto& self
#include <heed/heed.hpp>

struct combine {
    static constexpr heed::combiner_traits traits{.weights = heed::weight_kind::per_position};
    auto operator()(const heed::tensor auto& given, const heed::tensor auto& values) const
    {
        return heed::ops::weighted_sum(given, values);
    }
};

const heed::attention attend{heed::score::dot{}, heed::normalize::softmax{}, combine{}};
