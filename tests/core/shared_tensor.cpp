// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/shared_tensor.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <optional>
#include <type_traits>

using namespace heed;
using support::random;

TEST_CASE("made from an array it owns the numbers, which copies share; made from a view it is a view")
{
    auto x = random({2, 3}, 1);
    std::optional<shared_tensor<double, 2>> first = shared_tensor<double, 2>(x);
    const auto copy = *first;
    CHECK(copy.data() == first->data());
    CHECK(copy.data() != x.data());
    first.reset();
    CHECK(support::same_bits(copy, x));
    CHECK(copy(1, 2) == x(1, 2));
    CHECK(copy.size() == 6);

    const shared_tensor<double, 2> seen(view_of(x));
    x(1, 0) = 42;
    CHECK(seen(1, 0) == 42);
    CHECK(copy(1, 0) != 42);
}

TEST_CASE("the common type of several tensors")
{
    using owned = array<double, 2>;
    using seen = tensor_view<const double, 2>;
    using written = tensor_view<double, 2>;
    static_assert(std::is_same_v<joint_tensor<owned, owned>, owned>);
    static_assert(std::is_same_v<joint_tensor<seen, written>, seen>);
    static_assert(std::is_same_v<joint_tensor<written, written>, written>);
    static_assert(std::is_same_v<joint_tensor<owned, seen>, shared_tensor<double, 2>>);
    const auto x = random({2, 2}, 1);
    const joint_tensor<owned, seen> both[] = {x, view_of(x)};
    CHECK(both[0].data() != x.data());
    CHECK(both[1].data() == x.data());
}
