// SPDX-License-Identifier: BSD-3-Clause
#include <support/mechanism_tests.hpp>

// Mechanisms with one weight a position: what they compute, and how they learn.

TEST_CASE("values are those of the equations, step by step and in every form")
{
    const support::mechanism_sizes sizes;
    support::each_mechanism_per_position(
        sizes, [&](const std::string& name, const auto& attend, const auto& equation, bool temporal, auto describe) {
            CAPTURE(name);
            support::check_values(attend, equation, temporal, describe, sizes.width);
        });
}

TEST_CASE("gradients are those of finite differences, through history, in every form")
{
    const support::mechanism_sizes sizes;
    support::each_mechanism_per_position(
        sizes, [&](const std::string& name, const auto& attend, const auto&, bool, auto describe) {
            CAPTURE(name);
            support::check_gradients(attend, describe, sizes.width);
        });
}
