// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/diagnostics.hpp>

#include <heed/core/workspace_tensor.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <type_traits>
#include <vector>

using namespace heed;
using support::random;

// tests/compile_fail tests the messages.

TEST_CASE("the arguments that heed accepts")
{
    using matrix = array<double, 2>;
    using sum = decltype(std::declval<matrix>() + std::declval<matrix>());
    static_assert(detail::lazy_expression<sum> && !detail::lazy_expression<matrix> && !detail::lazy_expression<int>);
    static_assert(detail::vector_of_numbers<std::vector<float>> && !detail::vector_of_numbers<std::vector<int>>);
    static_assert(detail::all_taken<matrix, array<double, 1>, int>);
    static_assert(!detail::all_taken<matrix, sum>);
    static_assert(!detail::all_taken<matrix, std::vector<double>>);
    static_assert(!detail::one_number_type<matrix, array<float, 1>>);
    static_assert(detail::one_number_type<matrix, array<dual_number<double>, 1>, tensor_view<const double, 3>>);
    static_assert(detail::one_number_type<int, std::vector<float>>);  // neither is a tensor
}

TEST_CASE("after a message, compilation continues with the intended type")
{
    using matrix = array<double, 2>;
    using sum = decltype(std::declval<matrix>() + std::declval<matrix>());
    static_assert(std::is_same_v<detail::meant_by<float, sum>::type, array<float, 2>>);
    static_assert(std::is_same_v<detail::meant_by<float, std::vector<double>>::type, array<float, 1>>);
    static_assert(std::is_same_v<detail::meant_by<float, matrix>::type, array<float, 2>>);
    static_assert(std::is_same_v<detail::meant_by<double, matrix>::type, const matrix&>);
    static_assert(std::is_same_v<detail::meant_by<double, int>::type, const int&>);
}

TEST_CASE("xtensor's functions are found, to be rejected, only for workspace tensors")
{
    static_assert(detail::not_of_xtensor::word<workspace_tensor<double, 2>>);
    static_assert(!detail::not_of_xtensor::word<array<double, 2>>);
    const array<double, 2> y = xt::tanh(array<double, 2>({2, 2}, 0.0));  // xtensor's own
    CHECK(y(1, 1) == 0);
}
