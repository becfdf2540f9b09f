// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/hook_names.hpp>

#include <doctest/doctest.h>

#include <type_traits>

namespace {

namespace detail = heed::detail;

struct plain {
    void operator()() const {}
};
struct templated {
    template <class X>
    void prepare(const X&) const
    {}
    [[maybe_unused]] static constexpr bool random = true;
    using wraps = plain;
};
struct derived : templated {};
struct last final {
    void prepare() const {}
};
struct thin {};  // its own name is no member

struct lacks_a_letter {
    void mach(int) const {}
};
struct letter_twice {
    void matchh(int) const {}
};
struct letters_swapped {
    void amtch(int) const {}
};
struct without_last_letter {
    template <class X>
    void advanc(const X&) const
    {}
};
struct with_data {
    int mach = 0;
};
struct slip {
    [[maybe_unused]] static constexpr bool read_word = true;
};
struct mach {};

struct lists_one {
    void prepare() const {}
    void match() const {}
    using hooks = heed::hooks<"match">;
};
using of_lists = lists_one::hooks;

}  // namespace

TEST_CASE("a member of a hook's name: a function, a template, a constant or a type")
{
    CHECK(detail::has_call<plain>);
    CHECK(!detail::has_call<templated>);
    CHECK(!detail::has_prepare<plain>);
    CHECK(detail::has_prepare<templated>);
    CHECK(detail::has_prepare<derived>);
    CHECK(detail::has_random<templated>);
    CHECK(detail::has_wraps<templated>);
    CHECK(!detail::has_match<templated>);
    CHECK(!detail::has_thin<thin>);
    CHECK(!detail::has_prepare<int>);
    CHECK(!detail::shows_names<last>);
    CHECK(!detail::has_prepare<last>);
}

TEST_CASE("a member of almost that name: a letter less, twice or in another place")
{
    CHECK(detail::misspells_match<lacks_a_letter>());
    CHECK(detail::misspells_match<letter_twice>());
    CHECK(detail::misspells_match<letters_swapped>());
    CHECK(detail::misspells_advance<without_last_letter>());
    CHECK(detail::misspells_reads_word<slip>());
    CHECK(!detail::misspells_match<with_data>());  // data is no hook
    CHECK(!detail::misspells_match<mach>());
    CHECK(!detail::misspells_match<lists_one>());
    CHECK(!detail::misspells_advance<lacks_a_letter>());
    CHECK(!detail::misspells_match<int>());
}

TEST_CASE("a list of hooks")
{
    CHECK(detail::find_hook<templated>("prepare") == detail::hook_found::present);
    CHECK(detail::find_hook<templated>("match") == detail::hook_found::missing);
    CHECK(detail::find_hook<templated>("prepair") == detail::hook_found::unknown);
    CHECK(of_lists::lists("match"));
    CHECK(!of_lists::lists("prepare"));
    CHECK(of_lists::all<lists_one>(detail::hook_found::present));
    CHECK(!of_lists::all<templated>(detail::hook_found::present));
    CHECK(of_lists::all<templated>(detail::hook_found::missing));
    CHECK(!heed::hooks<"match", "mach">::all<lists_one>(detail::hook_found::missing));
    // Without a list every member of that name is a hook; with one, those that it has.
    CHECK(!detail::may_lack<templated>("prepare"));
    CHECK(detail::may_lack<templated>("match"));
    CHECK(detail::may_lack<lists_one>("prepare"));
    CHECK(!detail::may_lack<lists_one>("match"));
}
