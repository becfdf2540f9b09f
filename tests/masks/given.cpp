// SPDX-License-Identifier: BSD-3-Clause
#include <heed/masks/given.hpp>

#include <doctest/doctest.h>

#include <type_traits>

#include <heed/simd/score_index.hpp>

using namespace heed;

TEST_CASE("a mask is passed without a copy, and a function of an index becomes a mask")
{
    const lengths some{3, 1};
    CHECK(&heed::detail::mask_given(some) == &some);
    const auto sees = heed::detail::mask_given([](score_index p) { return p.key < 2; });
    CHECK(heed::detail::any_predicate_mask<std::remove_cvref_t<decltype(sees)>>);
}
