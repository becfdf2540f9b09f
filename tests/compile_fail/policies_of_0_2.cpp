// SPDX-License-Identifier: BSD-3-Clause
// expect: since 0.3 a policy declares its properties as traits
// expect: check_any_policy.*P = score|check_any_policy<score>
// expect: check_any_policy.*P = normalize|check_any_policy<normalize>
// expect: check_any_policy.*P = combine|check_any_policy<combine>
// expect: a policy must not be final
#include <heed/policy/check.hpp>

struct score {
    static constexpr heed::weight_kind weights = heed::weight_kind::per_position;
    void operator()(const auto&, const auto&) const {}
    static score parameters(auto&, auto&&) { return {}; }
};
struct normalize {
    static constexpr bool row_by_row = true;
    void operator()(const auto&, const auto&, const auto&) const {}
    static normalize parameters(auto&, auto&&) { return {}; }
};
struct combine {
    static constexpr heed::combiner_traits traits{.weights = heed::weight_kind::per_position};
    static constexpr bool commutes_with_matrices = true;
    void operator()(const auto&, const auto&) const {}
    static combine parameters(auto&, auto&&) { return {}; }
};
struct last final {
    void operator()(const auto&, const auto&, const auto&) const {}
    static last parameters(auto&, auto&&) { return {}; }
};

constexpr bool of_score = heed::check_score_policy<score>();
constexpr bool of_normalizer = heed::check_normalize_policy<normalize>();
constexpr bool of_combiner = heed::check_combine_policy<combine>();
constexpr bool of_final = heed::check_normalize_policy<last>();
