// SPDX-License-Identifier: BSD-3-Clause
// expect: almost `query`
// expect: almost `keys`
// expect: almost `begin`
// expect: almost `arrive`
// expect: almost `after`
// expect: must have `begin.memory.` and `after.past, weights, context, at.` .is a name misspelled
// expect: a score policy per group must have `std::size_t groups.. const`
#include <heed/attention/check.hpp>

struct score {
    static constexpr heed::weight_kind weights = heed::weight_kind::per_position;
    using laid_over = int;
    void operator()(const auto&, const auto&) const {}
    void begin(const auto&) const {}
    void after(const auto&, const auto&, const auto&, const auto&) const {}
    static score parameters(auto&, auto&&) { return {}; }
};
struct one : score {
    void qurey(const auto&, const auto&) const {}
};
struct two : score {
    void key(const auto&, const auto&) const {}
};
struct three : score {
    void begn(const auto&) const {}
};
struct four : score {
    void arive(const auto&, const auto&) const {}
};
struct five : score {
    void affter(const auto&, const auto&, const auto&, const auto&) const {}
};
struct six {
    static constexpr heed::weight_kind weights = heed::weight_kind::per_group;
    using laid_over = int;
    void operator()(const auto&, const auto&) const {}
    std::size_t number_of_groups() const { return 2; }
    static six parameters(auto&, auto&&) { return {}; }
};

template <class... Scores>
constexpr bool checked = (heed::check_score_policy<Scores>() && ...);
constexpr bool all = checked<one, two, three, four, five, six>;
