// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/verify.hpp>
#include <support/mechanisms.hpp>

// Every mechanism with one weight a position keeps every contract.

namespace {

void check_report(const std::string& name, std::size_t threads, const heed::verification& report)
{
    CAPTURE(name);
    CAPTURE(threads);
    CHECK_MESSAGE(bool(report), report.text());
}

}  // namespace

TEST_CASE("heed's own mechanisms keep the contracts, with one thread and with two")
{
    const auto check = [](const support::mechanism_sizes& sizes, heed::verification_sizes batch) {
        batch.width = sizes.width;
        support::each_mechanism_per_position(
            sizes, [&](const std::string& name, const auto& attend, const auto&, bool, auto describe) {
                for (const std::size_t threads : {std::size_t{1}, std::size_t{2}}) {
                    heed::set_threads(threads);
                    check_report(name, threads, heed::verify(attend, batch, describe));
                }
                heed::set_threads(1);
            });
    };
    check({}, {});
    check({}, {.batch = 9, .positions = 21, .steps = 2, .seed = 7});  // longer than a block, more rows than threads
    check({2, 9, 17, 3}, {.batch = 2, .positions = 3, .steps = 2});   // wider than a register
}
