// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/core/mask.hpp>

namespace heed {

/// A stretch of positions of each row: from begin[b], count[b] of them, at most `width`.
struct window {
    std::vector<std::size_t> begin;  // [B]
    lengths count;                   // [B]
    std::size_t width = 0;

    /// The positions of row b within `reach` of centre(b), as far as they are real.
    template <class Centre>
    static window around(const lengths& real, std::size_t reach, Centre&& centre)
    {
        window w;
        std::vector<std::size_t> count;
        w.width = 2 * reach + 1;
        for (std::size_t b = 0; b < real.batch(); ++b) {
            const std::size_t at = centre(b);
            const std::size_t first = at > reach ? at - reach : 0;
            const std::size_t last = at + reach + 1 < real[b] ? at + reach + 1 : real[b];
            w.begin.push_back(first < last ? first : 0);
            count.push_back(first < last ? last - first : 0);
        }
        w.count = lengths(std::move(count));
        return w;
    }
};

}  // namespace heed
