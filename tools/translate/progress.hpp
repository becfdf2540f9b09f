// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "../support/progress.hpp"

namespace translation {

using program::clock;
using program::duration_text;
using program::live_line;
using program::progress;
using program::seconds_since;

/// With this many decimals; 6.205e+31 for large values.
inline std::string number_text(double value, int decimals)
{
    return std::abs(value) < 1e7 ? fmt::format("{:.{}f}", value, decimals) : fmt::format("{:.{}e}", value, decimals);
}

/// Whether this process prints: among several processes of a command, only rank 0 does.
inline bool speaks = true;

/// Prints a line on standard error. If that fails, the program continues.
inline void say(const std::string& text)
{
    if (speaks) std::fputs((text + '\n').c_str(), stderr);
}

}  // namespace translation
