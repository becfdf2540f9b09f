// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <string>

#include <heed/verify.hpp>
#include <support/exhaustive.hpp>

/// Checks mechanisms with heed::verify.
namespace support {

inline void check_report(const std::string& name, const heed::verification& report)
{
    CHECK_MESSAGE(bool(report), name << ":\n" << report.text());
}

/// Verifies with annotations of width 5: with one thread, and with two for more rows than threads and more than a
/// block.
void check_contracts(const std::string& name, const auto& attend, const auto& describe)
{
    const auto check = [&](const heed::verification_sizes& sizes, std::size_t threads) {
        heed::set_threads(threads);
        check_report(name + ", threads " + std::to_string(threads), heed::verify(attend, sizes, describe));
        heed::set_threads(1);
    };
    const heed::verification_sizes few{.width = 5},
        many{.width = 5, .batch = 5, .positions = 17, .steps = 2, .seed = 7},
        more{.width = 5, .batch = 9, .positions = 21, .steps = 2, .seed = 7};
    check(few, 1);
    check(many, 2);
    if (exhaustive()) {
        check(few, 2);
        check(more, 1);
        check(more, 2);
    }
}

}  // namespace support
