// SPDX-License-Identifier: BSD-3-Clause
// expect: almost `commutes_with_matrices`
#include <heed/attention/check.hpp>

struct sum {
    static constexpr heed::weight_kind weights = heed::weight_kind::per_position;
    static constexpr bool commute_with_matrices = true;

    void operator()(const auto&, const auto&) const {}
    static sum parameters(auto&, auto&&) { return {}; }
};

static_assert(heed::check_combine_policy<sum>());
