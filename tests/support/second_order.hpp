// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/core/function_ref.hpp>
#include <support/tensors.hpp>

/// Products with the Hessian compared with central differences of gradients.
namespace support {

namespace detail {

struct moving_leaf {
    std::vector<double*>& at;

    heed::visited operator()(auto& x) const
    {
        const auto v = heed::view_of(x);
        for (std::size_t i = 0; i < v.size(); ++i) at.push_back(v.data + i);
        return {};
    }
};
struct listing_leaf {
    std::vector<double>& all;

    heed::visited operator()(const auto& x) const
    {
        const auto v = heed::view_of(x);
        all.insert(all.end(), v.data, v.data + v.size());
        return {};
    }
};
struct drawing_leaf {
    std::uint64_t& stream;

    template <class X>
    auto operator()(const X& x) const
    {
        return random<double>(heed::shape_of_rank<heed::rank_of<X>>(heed::shape_of(x)), stream++);
    }
};

/// The worst entry of `product` compared with (∇(p + h v) − ∇(p − h v)) / 2h, extrapolated from two steps h.
inline heed::ad::grad_check_result compare_products(const std::vector<double*>& parameters,
                                                    const std::vector<double>& direction,
                                                    const std::vector<double>& product,
                                                    heed::detail::function_ref<std::vector<double>> gradient, double h)
{
    const std::vector<double> before = [&] {
        std::vector<double> all;
        for (const double* p : parameters) all.push_back(*p);
        return all;
    }();
    const auto difference = [&](double step) {
        const auto at = [&](double by) {
            for (std::size_t i = 0; i < before.size(); ++i) *parameters[i] = before[i] + by * direction[i];
            return gradient();
        };
        auto above = at(step);
        const auto below = at(-step);
        for (std::size_t i = 0; i < above.size(); ++i) above[i] = (above[i] - below[i]) / (2 * step);
        return above;
    };
    const auto coarse = difference(2 * h), fine = difference(h);
    for (std::size_t i = 0; i < before.size(); ++i) *parameters[i] = before[i];
    heed::ad::grad_check_result result;
    for (std::size_t i = 0; i < product.size(); ++i) {
        const double numeric = (4 * fine[i] - coarse[i]) / 3;
        const double off = std::abs(product[i] - numeric) / (1 + std::abs(product[i]) + std::abs(numeric));
        ++result.entries;
        if (!(off <= result.worst)) {
            result.worst = std::isnan(off) ? INFINITY : off;
            result.where = "product[" + std::to_string(i) + "]";
            result.analytic = product[i];
            result.numeric = numeric;
        }
    }
    return result;
}

}  // namespace detail

/// The numbers of a module's parameters, in order.
template <class Module>
std::vector<double> numbers_in(const Module& module)
{
    std::vector<double> all;
    (void)heed::map_parameters(module, detail::listing_leaf{all});
    return all;
}

/// A module of the same kind with random numbers.
template <class Module>
auto random_like(const Module& module, std::uint64_t stream)
{
    return heed::map_parameters(module, detail::drawing_leaf{stream});
}

/// Checks H v of loss(tape, lifted module) for a random v; its gradient must equal that of plain numbers.
template <class Module, class Loss>
heed::ad::grad_check_result second_order(Module& module, const Loss& loss, double h = 1e-4)
{
    const auto direction = random_like(module, 77);
    const auto found = heed::ad::hessian_vector<double>(loss, module, direction);
    heed::ad::tape<double> on;
    const auto gradient = [&] {
        on.clear();
        std::vector<heed::ad::named_variable<double>> lifted;
        on.backward(loss(on, heed::ad::lift(on, module, lifted)));
        std::vector<double> all;
        for (const auto& x : lifted) {
            const auto d = on.gradient(x.numbers);
            all.insert(all.end(), d.data, d.data + d.size());
        }
        return all;
    };
    const auto first = gradient(), of_duals = numbers_in(found.gradient);
    std::vector<double*> parameters;
    (void)heed::map_parameters(module, detail::moving_leaf{parameters});
    auto result = detail::compare_products(parameters, numbers_in(direction), numbers_in(found.product), gradient, h);
    for (std::size_t i = 0; i < first.size(); ++i) {
        const double off = std::abs(first[i] - of_duals[i]) / (1 + std::abs(first[i]));
        if (!(off < 1e-9)) {
            result.worst = INFINITY;
            result.where = "gradient[" + std::to_string(i) + "]";
            result.analytic = of_duals[i];
            result.numeric = first[i];
        }
    }
    return result;
}

}  // namespace support

/// Checks that products with the Hessian of loss(tape, lifted module) match finite differences of gradients.
#define CHECK_SECOND_ORDER(...)                                                                                        \
    do {                                                                                                               \
        const auto found_product = support::second_order(__VA_ARGS__);                                                 \
        CHECK_MESSAGE(bool(found_product), found_product.text());                                                      \
    } while (false)
