// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <heed/core/mask.hpp>

namespace heed {

/// Consecutive positions of a row: `count` of them, from `first` on.
struct stretch {
    std::size_t first = 0;
    std::size_t count = 0;

    /// The positions within `reach` of a centre that a row of n has.
    static stretch around(std::size_t centre, std::size_t reach, std::size_t n)
    {
        const std::size_t first = centre > reach ? centre - reach : 0;
        const std::size_t last = std::min(centre + reach + 1, n);
        return first < last ? stretch{first, last - first} : stretch{};
    }
};

/// A view of a window, of all rows of a batch or of consecutive ones.
struct window_view {
    const std::size_t* begin = nullptr;  // [B]
    lengths_view count;                  // [B]
    std::size_t width = 0;

    /// The window of `n` rows from `first` on.
    window_view rows(std::size_t first, std::size_t n) const { return {begin + first, count.rows(first, n), width}; }
};

/// Consecutive positions of each row: count[b] of them, from begin[b] on, at most `width`.
struct window {
    std::vector<std::size_t> begin;  // [B]
    lengths count;                   // [B]
    std::size_t width = 0;

    /// Throws shape_error unless each row has both a begin and a count.
    operator window_view() const
    {
        require_shape<1>("window", "the list of first positions", {begin.size()}, {count.batch()},
                         "one for each row, as of the counts");
        return {begin.data(), count, width};
    }

    /// The real positions of row b within `reach` of centre(b).
    template <class Centre>
    static window around(const lengths_view& real, std::size_t reach, Centre&& centre)
    {
        window w;
        std::vector<std::size_t> count;
        w.width = 2 * reach + 1;
        for (std::size_t b = 0; b < real.batch(); ++b) {
            const stretch here = stretch::around(centre(b), reach, real[b]);
            w.begin.push_back(here.first);
            count.push_back(here.count);
        }
        w.count = lengths(std::move(count));
        return w;
    }
};

}  // namespace heed
