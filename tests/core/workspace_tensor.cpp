// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/workspace_tensor.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <type_traits>

using namespace heed;
using support::random;

TEST_CASE("a workspace tensor is a handle: copies share its numbers, and the next scope reuses its memory")
{
    const auto x = random({2, 3}, 1);
    const scratch outer;
    const double* before = nullptr;
    for (int again = 0; again < 2; ++again) {
        const scratch here;
        const auto y = workspace_family::constant(x, x);
        static_assert(std::is_same_v<decltype(y), const workspace_tensor<double, 2>>);
        CHECK(support::same_bits(y, x));
        CHECK(y.data() != x.data());
        const auto copy = y;
        CHECK(copy.data() == y.data());
        if (again == 1) CHECK(y.data() == before);
        before = y.data();
    }
    const workspace_tensor seen(view_of(x));
    CHECK(seen.data() == x.data());
    CHECK(seen.size() == 6);
    CHECK(shape_of(seen) == shape_of_rank<2>{2, 3});
    static_assert(plain_tensor<workspace_tensor<float, 1>> && !owning_tensor<workspace_tensor<float, 1>>);
    static_assert(std::is_same_v<family_of<workspace_tensor<float, 1>>, workspace_family>);
}
