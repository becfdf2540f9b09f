// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <tuple>
#include <type_traits>
#include <utility>

#include <heed/ad/ad.hpp>
#include <heed/core/dual_number.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/modify.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/sums.hpp>
#include <heed/ops/tiles.hpp>
#include <support/gradients.hpp>

namespace heed::inline HEED_TARGET::ops {

struct scale_gradient_op;  // of seq2seq/convolutional.hpp

}  // namespace heed::inline HEED_TARGET::ops

/// Second-order check of one operation in one line, by name: tests/scripts/second_order.sh reads these lines.
namespace support {

namespace detail {

/// A loss of these tensors on a tape. Its type does not depend on the operation, so the check is compiled once for all
/// operations of tensors with the same ranks.
template <class... X>
struct loss_of_inputs {
    template <class T>
    using lifted = inputs<heed::ad::var<T, heed::rank_of<X>>...>;
    template <class T>
    using loss = heed::detail::function_ref<heed::ad::var<T, 0>, const lifted<T>&>;

    loss<double> of_numbers;
    loss<heed::dual_number<double>> of_dual_numbers;

    auto operator()(auto&, const lifted<double>& at) const { return of_numbers(at); }
    auto operator()(auto&, const lifted<heed::dual_number<double>>& at) const { return of_dual_numbers(at); }
};

/// Σ uneven · (y + y²): curved even if y is linear in its arguments.
auto curved(const auto& y) { return heed::ops::dot(heed::ops::add(y, heed::ops::square(y)), uneven(y.shape())); }
/// The same for several results.
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

/// Whether the operation accepts the rank of each tensor, and rejects tensors of 0 or 6 axes with a message
/// (ops/arguments.hpp). Some operations accept any rank.
template <class Operation>
inline constexpr bool any_rank = false;
template <class F>
inline constexpr bool any_rank<heed::ops::unary<F>> = true;
template <class F>
inline constexpr bool any_rank<heed::ops::repeating_binary<F>> = true;
template <class F>
inline constexpr bool any_rank<heed::ops::modify_op<F>> = true;  // the table
template <class F, class M, class R, class C>
inline constexpr bool any_rank<heed::ops::attend_tiled_op<F, M, R, C>> = true;
template <>
inline constexpr bool any_rank<heed::ops::scale_op> = true;
template <>
inline constexpr bool any_rank<heed::ops::scale_gradient_op> = true;
template <>
inline constexpr bool any_rank<heed::ops::dropout_op> = true;
template <>
inline constexpr bool any_rank<heed::ops::reshaped_op> = true;

template <class Operation, std::size_t i, std::size_t n, class... A, std::size_t... at>
consteval bool takes_rank(std::index_sequence<at...>)
{
    using namespace heed::ops::detail;
    return takes<Operation, double, typename with_rank<A, at == i ? n : rank_or_0<A>>::type...>();
}
template <class Operation, class... A>
consteval bool refuses_ranks()
{
    return []<std::size_t... i>(std::index_sequence<i...> all)
    {
        return (
            (!heed::tensor<A> || !takes_rank<Operation, i, 0, A...>(all) || !takes_rank<Operation, i, 6, A...>(all)) &&
            ...);
    }
    (std::index_sequence_for<A...>{});
}

/// Calls an operation with settings after its tensors.
template <class... Settings>
struct with_settings {
    std::tuple<Settings...> settings;

    auto operator()(const auto& operation, const auto&... x) const
    {
        return std::apply([&](const auto&... each) { return operation(x..., each...); }, settings);
    }
    template <class Operation, class... X>
    static consteval bool refuses_other_ranks()
    {
        using namespace heed::ops::detail;
        using heed::plain_family;
        if constexpr (any_rank<Operation> || std::is_same_v<Operation, heed::ops::permuted_op>) {
            return true;
        } else {
            return takes<Operation, double, typename argument_type<plain_family, double, X>::type...,
                         typename argument_type<plain_family, double, Settings>::type...>() &&
                   refuses_ranks<Operation, typename argument_type<plain_family, double, X>::type...,
                                 typename argument_type<plain_family, double, Settings>::type...>();
        }
    }
};

/// Compares products with the Hessian of curved(call(operation, tanh(x)...)), with respect to all x..., with finite
/// differences.
template <class Operation, class Call, class... X>
heed::ad::grad_check_result curvature_of(const Operation& operation, const Call& call, const X&... x)
{
    if constexpr (requires { Call::template refuses_other_ranks<Operation, X...>(); })
        static_assert(Call::template refuses_other_ranks<Operation, X...>(),
                      "the operation accepts a meaningless rank");
    inputs<X...> module{{x...}};
    const auto loss = [&](const auto& lifted) {
        return std::apply([&](const auto&... v) { return curved(call(operation, heed::ops::tanh(v)...)); }, lifted.at);
    };
    return second_order(module, loss_of_inputs<X...>{loss, loss});
}

}  // namespace detail

/// Calls an operation with these settings after its tensors.
auto with(const auto&... settings)
{
    return detail::with_settings<std::remove_cvref_t<decltype(settings)>...>{{settings...}};
}

/// Whether the operation intentionally has no derivative. The reason is documentation.
template <class Operation>
consteval bool without_derivative(const Operation&, const char*)
{
    return !heed::ad::detail::goes_back<Operation>;
}
/// Has it a derivative, but no second one, on purpose?
template <class Operation>
consteval bool without_second_order(const Operation&, const char*)
{
    return heed::ad::detail::goes_back<Operation>;
}

}  // namespace support

/// CHECK_CURVATURE(ops::name, call, x...): products with the Hessian through call(ops::name, tanh(x)...) match finite
/// differences of gradients, with all x... as parameters at once.
#define CHECK_CURVATURE(...)                                                                                           \
    do {                                                                                                               \
        const auto found_curvature = support::detail::curvature_of(__VA_ARGS__);                                       \
        CHECK_MESSAGE(bool(found_curvature), found_curvature.text());                                                  \
    } while (false)
