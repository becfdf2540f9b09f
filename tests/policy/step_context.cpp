// SPDX-License-Identifier: BSD-3-Clause
#include <heed/policy/step_context.hpp>

#include <doctest/doctest.h>

#include <type_traits>

#include <support/tensors.hpp>

using namespace heed;
using support::random;

TEST_CASE("without masks a step context masks no score, and a window has the same query position")
{
    const auto query = random({2, 3}, 1), scores = random({2, 5}, 2);
    const heed::detail::no_masks none;
    const lengths real{5, 4};
    const step_context at{real, 7, query, none, 1};
    CHECK(&at.visible(scores) == &scores);
    CHECK(&plain_step_context{real}.visible(scores) == &scores);
    const auto there = heed::detail::in_windows(at);
    CHECK(std::is_same_v<decltype(at)::where, heed::detail::nowhere>);
    CHECK(std::is_same_v<decltype(there)::where, heed::detail::in_window>);
    CHECK(&there.query() == &query);
    CHECK(there.step == 7);
    CHECK(there.head == 1);
}
