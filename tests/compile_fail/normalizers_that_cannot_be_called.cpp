// SPDX-License-Identifier: BSD-3-Clause
// expect: has a member `start`
// expect: has a member `advance`
// expect: has a member `weights_for_combiner`
// expect: has a member `window`
// expect: has a member `tile_rule`
// expect: has a member `linear_rule`
// expect: has a member `inner_in_window`
// expect: a normalize policy with a state must take it
#include <heed/policy/check.hpp>
#include <heed/policy/step_context.hpp>
#include <heed/policy/weigh.hpp>

// Each would be ignored: it is not const, or takes too many or too few arguments.
struct normalize {
    auto operator()(const auto& scores, const auto&, const auto&) const { return scores; }
    static normalize parameters(auto&, auto&&) { return {}; }
};
struct starting : normalize {
    auto start() const { return 0; }
};
struct remembering : normalize {
    auto start(const auto& blank) const { return blank(0); }
};
struct advancing : remembering {
    auto advance(const auto&, const auto&, const auto& state) const { return state; }
};
struct thinning : normalize {
    auto weights_for_combiner(const auto& weights, const auto&) { return weights; }
};
struct forgetting : remembering {
    auto operator()(const auto& scores, const auto&) const { return scores; }
};
struct focusing : normalize {
    auto window(const auto& at) const { return at; }
    auto inside() const { return *this; }
};
struct tiling : normalize {
    auto tile_rule(const auto& scores) const { return scores; }
};
struct summing : normalize {
    auto linear_rule(const auto& scores) const { return scores; }
};

void use(const heed::array<double, 2>& x, const heed::plain_step_context& at)
{
    heed::start_of(starting{}, [&](double) { return x; });
    heed::next_of(advancing{}, x, x, x, at);
    heed::combiner_weights(thinning{}, x, at);
    heed::weigh(forgetting{}, x, x, at);
    heed::window_at(focusing{}, at, 3);
    heed::inside_of(focusing{}, at);
    static_assert(heed::check_normalize_policy<tiling>());
    static_assert(heed::check_normalize_policy<summing>());
}
