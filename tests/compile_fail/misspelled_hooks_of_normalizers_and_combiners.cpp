// SPDX-License-Identifier: BSD-3-Clause
// expect: almost `start`
// expect: almost `advance`
// expect: almost `thin`
// expect: almost `focus`
// expect: almost `inside`
// expect: almost `cuts`
// expect: almost `row_by_row`
// expect: almost `differentiable`
// expect: almost `random`
// expect: almost `ages`
// expect: almost `reads_length`
// expect: almost `ignores_offset`
// expect: almost `wraps`
// expect: almost `in_kernels`
// expect: almost `combine_all`
// expect: must have both `focus.at, positions.` and `inside.found.`
// expect: must have both `start.blank.` and `advance.scores, weights, state, at.`
// expect: must have the normalizer that it wraps as its member `inner`
#include <heed/attention/check.hpp>

struct normalize {
    void operator()(const auto&, const auto&, const auto&) const {}
    static normalize parameters(auto&, auto&&) { return {}; }
};
struct one : normalize {
    void statr(const auto&) const {}
};
struct two : normalize {
    void advanse(const auto&, const auto&, const auto&, const auto&) const {}
};
struct three : normalize {
    void thinn(const auto&, const auto&) const {}
};
struct four : normalize {
    void focuss(const auto&, std::size_t) const {}
    void inside(const auto&) const {}
};
struct five : normalize {
    void isnide(const auto&) const {}
};
struct six : normalize {
    static constexpr bool cut = false;
};
struct seven : normalize {
    static constexpr bool rowbyrow = true;
};
struct eight : normalize {
    static constexpr bool differentable = false;
};
struct nine : normalize {
    static constexpr bool randm = true;
};
struct ten : normalize {
    static constexpr bool agse = true;
};
struct eleven : normalize {
    static constexpr bool read_length = true;
};
struct twelve : normalize {
    static constexpr bool ignore_offset = true;
};
struct thirteen : normalize {
    using warps = int;
};
struct fourteen : normalize {
    using in_kernals = int;
};
struct fifteen : normalize {
    using wraps = normalize;
    normalize within;
    void start(const auto&) const {}
    void remember(const auto&, const auto&, const auto&, const auto&) const {}
};
struct combine : normalize {
    static constexpr heed::weight_kind weights = heed::weight_kind::per_position;
    void combin_all(const auto&, const auto&) const {}
};

template <class... Normalizers>
constexpr bool checked = (heed::check_normalize_policy<Normalizers>() && ...);
constexpr bool all =
    checked<one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen>;
constexpr bool of_combiner = heed::check_combine_policy<combine>();
