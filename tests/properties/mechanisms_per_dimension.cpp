// SPDX-License-Identifier: BSD-3-Clause
#include <support/mechanism_tests.hpp>

// Mechanisms with one weight per dimension: values and gradients.

TEST_CASE("values are those of the equations, step by step and in every form")
{
    // Sizes within a register, and sizes of several registers and a remainder.
    for (const support::mechanism_sizes sizes : {support::mechanism_sizes{}, {7, 19, 37, 3}}) {
        support::each_mechanism_per_dimension(sizes, [&](const std::string& name, const auto& attend,
                                                         const auto& equation, bool temporal, auto describe) {
            support::about(name + ", width " + std::to_string(sizes.width),
                           [&] { support::check_values(attend, equation, temporal, describe, sizes.width); });
        });
    }
}

TEST_CASE("gradients are those of finite differences, through history, in every form")
{
    for (const support::mechanism_sizes sizes : {support::mechanism_sizes{}, {2, 9, 17, 3}}) {
        support::each_mechanism_per_dimension(
            sizes, [&](const std::string& name, const auto& attend, const auto&, bool, auto describe) {
                support::about(name + ", width " + std::to_string(sizes.width),
                               [&] { support::check_gradients(attend, describe, sizes.width); });
            });
    }
}
