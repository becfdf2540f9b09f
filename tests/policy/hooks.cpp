// SPDX-License-Identifier: BSD-3-Clause
#include <heed/policy/hooks.hpp>

#include <doctest/doctest.h>

namespace {

namespace detail = heed::detail;

struct plain {
    void operator()() const {}
};
struct templated {
    template <class X>
    void prepare(const X&) const
    {}
};
struct derived : templated {};
struct last final {
    void prepare() const {}
};
struct thin {};  // the class name itself is not a member

struct lists_one {
    void prepare() const {}
    void match() const {}
    using hooks = heed::hooks<"match">;
};
using of_lists = lists_one::hooks;

}  // namespace

TEST_CASE("a member with the name of a hook may be a function or a template")
{
    CHECK(detail::has_call<plain>);
    CHECK(!detail::has_call<templated>);
    CHECK(!detail::has_prepare<plain>);
    CHECK(detail::has_prepare<templated>);
    CHECK(detail::has_prepare<derived>);
    CHECK(!detail::has_match<templated>);
    CHECK(!detail::has_weights_for_combiner<thin>);
    CHECK(!detail::has_prepare<int>);
    CHECK(!detail::shows_names<last>);
    CHECK(!detail::has_prepare<last>);
}

TEST_CASE("a callable hook is detected")
{
    CHECK(heed::hook::prepare<templated, int>);
    CHECK(!heed::hook::prepare<templated>);
    CHECK(!heed::hook::match<templated, int>);
    CHECK(heed::hook::call<plain>);
    CHECK(!heed::hook::call<plain, int>);
}

TEST_CASE("hooks can be listed")
{
    CHECK(detail::is_hook("prepare"));
    CHECK(!detail::is_hook("prepair"));
    CHECK(detail::has_hook<templated>("prepare"));
    CHECK(!detail::has_hook<templated>("match"));
    CHECK(of_lists::lists("match"));
    CHECK(!of_lists::lists("prepare"));
    CHECK(of_lists::exist());
    CHECK(of_lists::are_members<lists_one>());
    CHECK(!of_lists::are_members<templated>());
    CHECK(!heed::hooks<"match", "mach">::exist());
    // Without a list every member with a hook's name is a hook; with a list, only the listed members.
    CHECK(!detail::leaves_out<templated>("prepare"));
    CHECK(detail::leaves_out<lists_one>("prepare"));
    CHECK(!detail::leaves_out<lists_one>("match"));
}
