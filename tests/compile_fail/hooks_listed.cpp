// SPDX-License-Identifier: BSD-3-Clause
// expect: lists a name that is not a hook
// expect: lists a hook that it does not have: is the member misspelled
#include <heed/policy/check.hpp>

// heed has no hook `prepair`, even if it is listed.
struct score {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
    void prepair(const auto&) const {}
    void operator()(const auto&, const auto&) const {}
    static score parameters(auto&, auto&&) { return {}; }
};
struct one : score {
    using hooks = heed::hooks<"prepair">;
};
struct two : score {
    using hooks = heed::hooks<"prepare">;
};

constexpr bool all = heed::check_score_policy<one>() && heed::check_score_policy<two>();
