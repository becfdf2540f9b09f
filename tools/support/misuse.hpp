// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/errors.hpp>

namespace program {

/// The exit status after an invalid command line, as in most programs; 1 is for all other failures.
inline constexpr int misuse_status = 2;

/// Incompatible options, detected after the command line was parsed: the program exits with misuse_status.
struct misuse : heed::error {
    using heed::error::error;
};

/// The number of insertions, deletions, replacements or exchanges of neighboring characters that turn one text into the
/// other.
inline std::size_t edits(std::string_view one, std::string_view other)
{
    const std::size_t m = other.size();
    std::vector<std::size_t> before_last(m + 1), last(m + 1), now(m + 1);
    std::iota(last.begin(), last.end(), std::size_t{0});
    for (std::size_t i = 1; i <= one.size(); ++i) {
        now[0] = i;
        for (std::size_t j = 1; j <= m; ++j) {
            now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
                now[j] = std::min(now[j], before_last[j - 2] + 1);
        }
        before_last = last;
        last = now;
    }
    return last[m];
}

/// The most similar name: one with `given` as its prefix, else the nearest if it is near. Empty if none is.
inline std::string meant(std::string_view given, const std::vector<std::string>& names)
{
    std::string best;
    std::size_t fewest = given.size() / 3 + 1;
    for (const std::string& each : names) {
        const std::size_t count = each.starts_with(given) ? 0 : edits(given, each);
        if (count < fewest || (count == 0 && best.empty())) {
            fewest = count;
            best = each;
        }
    }
    return best;
}

}  // namespace program
