// SPDX-License-Identifier: BSD-3-Clause
// expect-ok
//
// A control: members with almost the name of a hook, and members with a hook's name that belong to the policy or to a
// policy that lists its hooks.
#include <heed/attention/execute/blocked.hpp>
#include <heed/policy/check.hpp>
#include <heed/policy/score_hooks.hpp>

struct score {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
    void operator()(const auto&, const auto&) const {}
    static score parameters(auto&, auto&&) { return {}; }
};
struct with_data : score {
    using wraps = score;
    static constexpr bool adapts = true, passes_state = true;
    int key = 0, strat = 0;
};
struct with_a_list : score {
    using hooks = heed::hooks<"project", "match">;
    void project(const auto&) const {}
    void match(const auto&, const auto&) const {}
    void matches() const {}
    void prepare(int, int) const {}
    auto score_matrix(const auto& queries, const auto&) const requires(sizeof(queries) == 0) { return queries; }
};
template <class>
struct match : score {};
struct preparing : match<int> {};
struct key : score {
    using wraps = score;
    static constexpr bool adapts = true, passes_state = true;
};
struct memory {
    heed::array<double, 2> keys, values;
};
static_assert(heed::check_score_policy<with_data>() && heed::check_score_policy<with_a_list>());
static_assert(heed::check_score_policy<match<int>>() && heed::check_score_policy<key>());
static_assert(!heed::detail::has_match<match<int>> && !heed::detail::has_match<preparing>);
static_assert(heed::detail::check_at_once<with_a_list, score, int, memory>());

auto use(const heed::array<double, 3>& annotations) { return heed::score::over::prepare(with_a_list{}, annotations); }
