// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <tuple>

#include <heed/ad/ad.hpp>
#include <heed/core/callback.hpp>
#include <heed/core/dual_number.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/sums.hpp>
#include <support/gradients.hpp>

/// The second order of one operation in one line, by its name: tests/scripts/second_order.sh reads these.
namespace support {

namespace detail {

/// A loss of these tensors on a tape. Its type does not depend on the operation: what checks it is compiled once for
/// all operations of tensors with the same ranks.
template <class... X>
struct loss_of_inputs {
    template <class T>
    using lifted = inputs<heed::ad::var<T, heed::rank_of<X>>...>;
    template <class T>
    using loss = heed::detail::callback<heed::ad::var<T, 0>, const lifted<T>&>;

    loss<double> of_numbers;
    loss<heed::dual_number<double>> of_dual_numbers;

    auto operator()(auto&, const lifted<double>& at) const { return of_numbers(at); }
    auto operator()(auto&, const lifted<heed::dual_number<double>>& at) const { return of_dual_numbers(at); }
};

/// Σ uneven · (y + y²): curved where y is linear in its arguments.
auto curved(const auto& y) { return heed::ops::inner(heed::ops::add(y, heed::ops::square(y)), uneven(y.shape())); }
/// The same of several results.
template <class First, class... Rest>
auto curved(const std::tuple<First, Rest...>& y)
{
    return std::apply(
        [](const auto& first, const auto&... rest) {
            auto sum = curved(first);
            ((sum = heed::ops::add(sum, curved(rest))), ...);
            return sum;
        },
        y);
}

/// Products with the Hessian of curved(call(operation, tanh(x)...)) by all of x... against differences.
template <class Operation, class Call, class... X>
heed::ad::grad_check_result curvature_of(const Operation& operation, const Call& call, const X&... x)
{
    inputs<X...> module{{x...}};
    const auto loss = [&](const auto& lifted) {
        return std::apply([&](const auto&... v) { return curved(call(operation, heed::ops::tanh(v)...)); }, lifted.at);
    };
    return second_order(module, loss_of_inputs<X...>{loss, loss});
}

}  // namespace detail

/// Calls an operation with these settings behind its tensors.
auto with(const auto&... settings)
{
    return [=](const auto& operation, const auto&... x) { return operation(x..., settings...); };
}

/// Has the operation no derivative, on purpose? The reason is for the reader.
template <class Operation>
consteval bool without_derivative(const Operation&, const char*)
{
    return !heed::ad::detail::goes_back<Operation>();
}

}  // namespace support

/// CHECK_CURVATURE(ops::name, call, x...): products with the Hessian through call(ops::name, tanh(x)...) are what
/// differences of gradients find, all of x... being parameters at once.
#define CHECK_CURVATURE(...)                                                                                           \
    do {                                                                                                               \
        const auto found_curvature = support::detail::curvature_of(__VA_ARGS__);                                       \
        CHECK_MESSAGE(bool(found_curvature), found_curvature.text());                                                  \
    } while (false)
