// SPDX-License-Identifier: BSD-3-Clause
// expect: must have `init_state.memory.` and `update_state.state, weights, context, at.` .is a name misspelled
// expect: a score policy per group must have `std::size_t groups.. const`
// expect: must have both `window.at, positions.` and `inner_in_window.found.`
// expect: must have both `start.blank.` and `advance.scores, weights, state, at.`
// expect: must have the normalizer that it wraps as its member `inner`
// expect: the traits of a normalize policy are
#include <heed/policy/check.hpp>

struct with_begin {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
    using wraps = int;
    static constexpr bool adapts = true;
    void operator()(const auto&, const auto&) const {}
    void init_state(const auto&) const {}
    void affter(const auto&, const auto&, const auto&, const auto&) const {}
    static with_begin parameters(auto&, auto&&) { return {}; }
};
struct per_group {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_group};
    void operator()(const auto&, const auto&) const {}
    std::size_t number_of_groups() const { return 2; }
    static per_group parameters(auto&, auto&&) { return {}; }
};
struct normalize {
    void operator()(const auto&, const auto&, const auto&) const {}
    static normalize parameters(auto&, auto&&) { return {}; }
};
struct with_window : normalize {
    void focuss(const auto&, std::size_t) const {}
    void inner_in_window(const auto&) const {}
};
struct around : normalize {
    using wraps = normalize;
    normalize within;
    void start(const auto&) const {}
    void remember(const auto&, const auto&, const auto&, const auto&) const {}
};
struct with_traits_of_a_score : normalize {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};
};

constexpr bool of_scores = heed::check_score_policy<with_begin>() && heed::check_score_policy<per_group>();
constexpr bool of_normalizers = heed::check_normalize_policy<with_window>() && heed::check_normalize_policy<around>() &&
                                heed::check_normalize_policy<with_traits_of_a_score>();
