// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include <heed/verify.hpp>
#include <support/exhaustive.hpp>
#include <support/mechanisms.hpp>

/// Checks that mechanisms keep heed::verify's contracts.
namespace support {

inline void check_report(const std::string& name, const heed::verification& report)
{
    CHECK_MESSAGE(bool(report), name << ":\n" << report.text());
}

/// `each(sizes, f)` calls f(name, attention, equation, temporal, describe), as each_mechanism_per_position does.
template <class Each>
void check_contracts(const Each& each)
{
    const auto check = [&each](const mechanism_sizes& sizes, heed::verification_sizes batch, std::size_t of_threads) {
        batch.width = sizes.width;
        each(sizes, [&](const std::string& name, const auto& attend, const auto&, bool, auto describe) {
            for (const std::size_t threads : {std::size_t{1}, std::size_t{2}}) {
                if (threads != of_threads && !exhaustive()) continue;
                heed::set_threads(threads);
                check_report(name + ", threads " + std::to_string(threads), heed::verify(attend, batch, describe));
            }
            heed::set_threads(1);
        });
    };
    check({}, {}, 1);
    check({}, {.batch = 9, .positions = 21, .steps = 2, .seed = 7}, 2);  // longer than a block, more rows than threads
    check({2, 9, 17, 3}, {.batch = 2, .positions = 3, .steps = 2}, 1);   // wider than a register
}

}  // namespace support
