// SPDX-License-Identifier: BSD-3-Clause
// expect: almost `prepare`, a hook, and heed would never use it: correct the name
// expect: almost `project`
// expect: almost `match`
// expect: almost `match_all`
// expect: almost `start`
// expect: almost `recall`
// expect: almost `advance`
// expect: almost `project_words`
// expect: almost `reads_word`
// expect: almost `reads_context`
// expect: almost `reads_length`
// expect: almost `in_kernels`
// expect: almost `map`
#include <heed/attention/check.hpp>

// Each would be ignored: no U h_j once per batch, a decoder that gives no word, a beam that cannot select.
struct score {
    static constexpr heed::weight_kind weights = heed::weight_kind::per_position;
    void operator()(const auto&, const auto&) const {}
    static score parameters(auto&, auto&&) { return {}; }
};
struct one : score {
    void prepre(const auto&) const {}  // a letter dropped
};
struct two : score {
    void projject(const auto&) const {}  // a letter twice
};
struct three : score {
    void mathc(const auto&, const auto&) const {}  // two letters swapped
};
struct four : score {
    void match_al(const auto&, const auto&) const {}
};
struct five : score {
    void strat(const auto&) const {}
};
struct six : score {
    void recal(const auto&, const auto&) const {}
};
struct seven : score {
    void advence(const auto&, const auto&, const auto&) const {}
};
struct eight : score {
    void project_word(const auto&) const {}
};
struct nine : score {
    static constexpr bool read_word = true;
};
struct ten : score {
    static constexpr bool read_context = false;
};
struct eleven : score {
    static constexpr bool reads_lenght = true;
};
struct twelve : score {
    using in_kernel = int;
};
struct state {
    state mapp(const auto&, const auto&...) const { return {}; }
};

template <class... Scores>
constexpr bool checked = (heed::check_score_policy<Scores>() && ...);
constexpr bool all = checked<one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve>;
constexpr bool of_state = heed::check_map<state>();
