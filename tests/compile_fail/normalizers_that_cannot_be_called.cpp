// SPDX-License-Identifier: BSD-3-Clause
// expect: has a member `start`
// expect: has a member `advance`
// expect: has a member `thin`
// expect: has a member `focus`
// expect: has a member `by_tiles`
// expect: has a member `by_sums`
// expect: has a member `inside`
// expect: a normalize policy that remembers must take its state
#include <heed/attention/check.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/weigh.hpp>

// Each would be ignored: it is not const, or takes too much or too little.
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
    auto thin(const auto& weights, const auto&) { return weights; }
};
struct forgetting : remembering {
    auto operator()(const auto& scores, const auto&) const { return scores; }
};
struct focusing : normalize {
    auto focus(const auto& at) const { return at; }
    auto inside() const { return *this; }
};
struct tiling : normalize {
    auto by_tiles(const auto& scores) const { return scores; }
};
struct summing : normalize {
    auto by_sums(const auto& scores) const { return scores; }
};

void use(const heed::array<double, 2>& x, const heed::plain_moment& at)
{
    heed::start_of(starting{}, [&](double) { return x; });
    heed::next_of(advancing{}, x, x, x, at);
    heed::thinned(thinning{}, x, at);
    heed::weigh(forgetting{}, x, x, at);
    heed::focus_of(focusing{}, at, 3);
    heed::inside_of(focusing{}, at);
    static_assert(heed::check_normalize_policy<tiling>());
    static_assert(heed::check_normalize_policy<summing>());
}
