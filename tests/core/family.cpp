// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/family.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <type_traits>

using namespace heed;
using support::random;

TEST_CASE("a filled tensor, and a copy, in the family of another")
{
    const auto x = random({2, 3}, 1);
    const auto must = filled<double, 1>({4}, 0.5);
    const auto owned = constant_like(x, shape_of_rank<1>{4}, 0.5);
    static_assert(std::is_same_v<decltype(owned), const array<double, 1>>);
    CHECK(support::same_bits(owned, must));

    const scratch here;
    const auto some = constant_like(workspace_tensor(view_of(x)), shape_of_rank<1>{4}, 0.5);
    static_assert(std::is_same_v<decltype(some), const workspace_tensor<double, 1>>);
    CHECK(support::same_bits(some, must));

    ad::tape<double> on;
    const auto v = on.parameter(x);
    const auto taped = constant_like(v, shape_of_rank<1>{4}, 0.5);
    CHECK(support::same_bits(taped, must));
    CHECK(&taped.tape() == &on);
    CHECK_FALSE(taped.wanted());

    auto y = random({2}, 2);
    const auto lifted = same_family(v, y);
    CHECK(&lifted.tape() == &on);
    CHECK(support::same_bits(lifted, y));
    CHECK(same_family(y, v).data() == v.data());  // already in the larger family
    static_assert(std::is_same_v<decltype(same_family(y, x)), array<double, 2>>);
}

TEST_CASE("the first taped argument, otherwise the first argument")
{
    ad::tape<double> on;
    const auto x = random({2}, 1), y = random({2}, 2);
    const auto v = on.parameter(y);
    CHECK(detail::taped_among(x, v).data() == v.data());
    CHECK(detail::taped_among(x, y).data() == x.data());
}
