// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <support/contracts.hpp>

// Every mechanism with one weight per position keeps every contract.

TEST_CASE("heed's own mechanisms keep the contracts, with one thread and with two")
{
    support::check_contracts([](const auto& sizes, const auto& f) { support::each_mechanism_per_position(sizes, f); });
}
