// SPDX-License-Identifier: BSD-3-Clause
// expect: has a member `prepare`, which heed cannot call: declare it `auto prepare.const heed::tensor auto& annotations
// expect: has a member `project`, which heed cannot call with this query
// expect: has a member `match`
// expect: has a member `start`
// expect: has a member `observe_memory`
// expect: has a member `advance`
// expect: has a member `query`
// expect: has a member `keys`
// expect: has a member `observe_query`
// expect: has a member `score_matrix`
// expect: has a member `combine_matrix`
// expect: has a member `map`
// expect: has a member `project_words`
// expect: a score policy with a state must take it
#include <heed/attention/execute/blocked.hpp>
#include <heed/policy/check.hpp>
#include <heed/score/over.hpp>

// Each would be ignored: it is not const, or takes too many or too few arguments.
struct score {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
    using tensor = heed::array<double, 2>;
    tensor operator()(const auto& x, const auto&) const { return x; }
    static score parameters(auto&, auto&&) { return {}; }
};
struct preparing : score {
    auto prepare(const auto& annotations) { return annotations; }
};
struct projecting : score {
    auto project(const auto& query, int) const { return query; }
};
struct matching : score {
    auto match(const auto& projected) const { return projected; }
};
struct starting : score {
    auto start() const { return 0; }
};
struct recalling : score {
    auto observe_memory(const auto& state) const { return state; }
};
struct advancing : score {
    auto advance(auto& state, const auto&, const auto&, const auto&, int) const { return state; }
};
struct asking : score {
    using wraps = score;
    score base;
    static constexpr bool adapts = true, passes_state = true;
    auto query(const auto& projected) const { return projected; }
};
struct adding : score {
    using wraps = score;
    score base;
    static constexpr bool adapts = true, passes_state = true;
    auto keys(const auto& plain_keys) const { return plain_keys; }
};
struct arriving : heed::score::over::score_adaptor<arriving, score> {
    auto init_state(const auto&) const { return heed::no_score_state{}; }
    auto update_state(const auto& state, const auto&, const auto&, const auto&) const { return state; }
    auto observe_query(const auto& state) const { return state; }
};
struct remembering : score {
    auto start(const auto& memory) const { return memory; }
    auto match(const auto& projected, const auto&) const { return projected; }
};
struct together : score {
    auto score_matrix(const auto& queries) const { return queries; }
};
struct combining : score {
    auto combine_matrix(const auto& given) const { return given; }
};
struct fitting : score {
    auto score_matrix(const auto& queries, const auto&) const { return queries; }
};
struct wording : score {
    auto project_words(const auto& words, int) const { return words; }
};
struct state {
    state map() const { return {}; }
};

namespace over = heed::score::over;
using tensor = score::tensor;
struct memory {
    tensor keys, values;
};
struct state_of_adaptor : heed::no_score_state {
    heed::no_score_state base;
    heed::no_score_state own() const { return {}; }
};

void use(const tensor& x, const heed::no_score_state& state, const heed::plain_step_context& at)
{
    over::prepare(preparing{}, x);
    over::projected(projecting{}, x);
    over::compare(matching{}, x, x, state);
    over::start(starting{}, x);
    over::observe_memory(recalling{}, state, at);
    over::advance(advancing{}, state, x, x, at);
    over::query(asking{}, x, state);
    over::keys(adding{}, x, state);
    arriving{}.observe_memory(state_of_adaptor{}, at);
    over::compare(remembering{}, x, x, state);
}
constexpr bool all = heed::detail::check_at_once<together, combining, tensor, memory>() &&
                     heed::detail::check_at_once<fitting, combining, tensor, memory>() && heed::check_map<state>() &&
                     over::projects_words<wording, tensor>();
