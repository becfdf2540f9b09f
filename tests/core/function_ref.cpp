// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/function_ref.hpp>

#include <doctest/doctest.h>

#include <type_traits>

using namespace heed;

TEST_CASE("a callback calls the referenced function, not a copy, and passes references as references")
{
    int calls = 0;
    const auto add = [&calls](int& to, double x) {
        ++calls;
        to += static_cast<int>(x);
        return to;
    };
    const detail::function_ref<int, int&, double> call = add;
    int sum = 1;
    CHECK(call(sum, 2.0) == 3);
    CHECK(sum == 3);
    const auto copy = call;  // refers to the same function
    CHECK(copy(sum, 4.0) == 7);
    CHECK(calls == 2);
    static_assert(std::is_trivially_copyable_v<detail::function_ref<void>>);
}
