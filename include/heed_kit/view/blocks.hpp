// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include <heed/core/errors.hpp>
#include <heed/simd/score_index.hpp>

namespace heed::inline HEED_TARGET::view {

/// A mask as text, a character for each block of `size` queries and `size` keys: █ if every query sees every key,
/// ▒ if some pairs are visible, · if no pair is visible. Tiled attention (attention/execute/tiled.hpp) skips blocks of
/// the last kind, though its blocks have other sizes.
///
///     std::cout << view::blocks(causal{} & sliding_window{16}, 96, 96, 8);
///
/// The text has a row for each block of queries. The last query is at the position of the last key, as in attention;
/// `batch` and `head` are passed to the mask. Throws shape_error if size is 0.
template <class Mask>
std::string blocks(const Mask& mask, std::size_t queries, std::size_t keys, std::size_t size, std::size_t batch = 0,
                   std::size_t head = 0)
{
    if (size == 0) throw shape_error("view::blocks: blocks of size 0; each must have at least one query");
    const auto number = [](std::size_t n) { return static_cast<std::int32_t>(n); };
    score_index p;
    p.batch = number(batch);
    p.head = number(head);
    std::string text;
    for (std::size_t row = 0; row < queries; row += size) {
        for (std::size_t column = 0; column < keys; column += size) {
            bool some = false, all = true;
            for (std::size_t s = row; s < std::min(queries, row + size); ++s) {
                p.query = number(s);
                p.diagonal = number(keys) - number(queries) + number(s);
                for (std::size_t t = column; t < std::min(keys, column + size); ++t) {
                    p.key = number(t);
                    const bool seen = lane_mask(heed::detail::as_predicate(mask)(p)).at[0] != 0;
                    some = some || seen;
                    all = all && seen;
                }
            }
            text += all ? "█" : some ? "▒" : "·";
        }
        text += '\n';
    }
    return text;
}

}  // namespace heed::inline HEED_TARGET::view
