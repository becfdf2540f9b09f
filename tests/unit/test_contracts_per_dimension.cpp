// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/verify.hpp>
#include <support/mechanisms.hpp>

// Every mechanism with one weight a dimension keeps every contract.

TEST_CASE("heed's own mechanisms keep the contracts, with one thread and with two")
{
    const support::mechanism_sizes sizes;
    support::each_mechanism_per_dimension(
        sizes, [&](const std::string& name, const auto& attend, const auto&, bool, auto describe) {
            for (const std::size_t threads : {std::size_t{1}, std::size_t{2}}) {
                CAPTURE(name);
                CAPTURE(threads);
                heed::set_threads(threads);
                const heed::verification report = heed::verify(attend, {.width = sizes.width}, describe);
                CHECK_MESSAGE(bool(report), report.text());
                // Wider than a register, longer than a block, more sentences than threads.
                const heed::verification larger = heed::verify(
                    attend, {.width = sizes.width, .batch = 9, .positions = 21, .steps = 2, .seed = 7}, describe);
                CHECK_MESSAGE(bool(larger), larger.text());
            }
            heed::set_threads(1);
        });
}
