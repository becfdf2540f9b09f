// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include <heed/ad/ad.hpp>
#include <support/second_order.hpp>
#include <support/tensors.hpp>

/// The gradient check of one operation in one line.
namespace support {

/// Several tensors as a module, to be lifted, visited and checked together.
template <class... X>
struct inputs {
    std::tuple<X...> at;

    static auto parameters(auto& self, auto&& visit)
    {
        return [&]<std::size_t... i>(std::index_sequence<i...>)
        {
            return of(std::tuple{visit("input " + std::to_string(i), std::get<i>(self.at))...});
        }
        (std::index_sequence_for<X...>{});
    }

    template <class... Y>
    static inputs<Y...> of(std::tuple<Y...> y)
    {
        return {std::move(y)};
    }
};

namespace detail {

/// Argument i: lifted if bit i of `mask` is set, otherwise the plain array.
template <unsigned mask, class Lifted, class Plain, class F, std::size_t... i>
auto call_with(const Lifted& lifted, const Plain& plain, F&& f, std::index_sequence<i...>)
{
    return f([&]() -> const auto& {
        if constexpr ((mask >> i & 1u) != 0) {
            return std::get<i>(lifted);
        } else {
            return std::get<i>(plain);
        }
    }()...);
}

}  // namespace detail

/// The worst entry of the gradient of Σ uneven · f(x...) with respect to all x..., with the arguments of `mask` on the
/// tape and the others plain; f returns a variable of any rank.
template <unsigned mask, class F, class... X>
heed::ad::grad_check_result gradient_of(F&& f, const X&... x)
{
    // Only the lifted arguments are checked: the others are constants.
    inputs<X...> module{{x...}};
    const auto loss = [&](auto&, const auto& lifted) {
        const auto y = detail::call_with<mask>(lifted.at, module.at, f, std::index_sequence_for<X...>{});
        return heed::ops::dot(y, uneven(y.shape()));
    };
    if constexpr (mask == (1u << sizeof...(X)) - 1) {
        const auto found = heed::ad::grad_check(module, loss);
        // With y + y², so that the Hessian is not 0 if f is linear.
        const auto curved = support::second_order(module, [&](auto&, const auto& lifted) {
            const auto y = detail::call_with<mask>(lifted.at, module.at, f, std::index_sequence_for<X...>{});
            return heed::ops::dot(heed::ops::add(y, heed::ops::multiply(y, y)), uneven(y.shape()));
        });
        return found && !curved ? curved : found;
    } else {
        // The plain arguments have a gradient of zero on the tape, but not in finite differences: check the others.
        heed::ad::tape<double> on;
        const auto gradients = [&] {
            on.clear();
            const auto lifted = heed::ad::lift(on, module);
            on.backward(loss(on, lifted));
            return std::apply([&](const auto&... v) { return std::tuple{heed::copy_of(on.gradient(v))...}; },
                              lifted.at);
        };
        const auto some = gradients();
        const auto all = [&] {
            on.clear();
            const auto lifted = heed::ad::lift(on, module);
            const auto y = std::apply(f, lifted.at);
            on.backward(heed::ops::dot(y, uneven(y.shape())));
            return std::apply([&](const auto&... v) { return std::tuple{heed::copy_of(on.gradient(v))...}; },
                              lifted.at);
        }();
        heed::ad::grad_check_result result;
        [&]<std::size_t... i>(std::index_sequence<i...>)
        {
            const auto compare = [&]<std::size_t k>(std::integral_constant<std::size_t, k>) {
                if constexpr ((mask >> k & 1u) != 0) {
                    result.entries += std::get<k>(some).size();
                    const double off = distance(std::get<k>(some), std::get<k>(all));
                    if (!(off <= result.worst)) {
                        result.worst = off;
                        result.where = "input " + std::to_string(k) + " with mask " + std::to_string(mask);
                    }
                }
            };
            (compare(std::integral_constant<std::size_t, i>{}), ...);
        }
        (std::index_sequence_for<X...>{});
        return result;
    }
}

/// The same for every subset of the arguments on the tape; returns the worst.
template <class F, class... X>
heed::ad::grad_check_result gradient_of(F&& f, const X&... x)
{
    heed::ad::grad_check_result worst;
    std::size_t entries = 0;
    [&]<unsigned... mask>(std::integer_sequence<unsigned, mask...>)
    {
        const auto keep = [&](const heed::ad::grad_check_result& result) {
            entries += result.entries;
            if (!(result.worst <= worst.worst)) worst = result;
        };
        (keep(gradient_of<mask + 1>(f, x...)), ...);
    }
    (std::make_integer_sequence<unsigned, (1u << sizeof...(X)) - 1>{});
    worst.entries = entries;
    return worst;
}

/// Runs f forward and backward on tensors with an axis of length 0. Without elements for finite differences, values
/// must equal those of plain tensors, and gradients must have the arguments' shapes and be finite.
template <class F, class... X>
void check_empty(F&& f, const X&... x)
{
    heed::ad::tape<double> on;
    const std::tuple taped{on.parameter(x)...};
    const auto y = std::apply(f, taped);
    CHECK(same_bits(y, f(x...)));
    on.backward(heed::ops::dot(y, uneven(y.shape())));
    const auto check = [&](const auto& v) {
        const auto gradient = on.gradient(v);
        CHECK(gradient.shape == v.shape());
        for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(std::isfinite(gradient.data[i]));
    };
    std::apply([&](const auto&... v) { (check(v), ...); }, taped);
}

}  // namespace support

/// Checks that the gradient of a loss of uneven constants through f(x...) matches finite differences.
#define CHECK_GRADIENT(...)                                                                                            \
    do {                                                                                                               \
        const auto found_gradient = support::gradient_of(__VA_ARGS__);                                                 \
        CHECK_MESSAGE(bool(found_gradient), found_gradient.text());                                                    \
    } while (false)
