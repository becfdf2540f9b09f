// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace heed::view {

/// The data for a picture of one sentence pair: how much each target word attended to each source word. It refers to
/// the caller's data and copies nothing.
struct alignment {
    std::span<const float> weights;       ///< [S,T], row-major: row j has target word j's weights over the source
    std::span<const std::string> source;  ///< T words, the columns
    std::span<const std::string> target;  ///< S words, the rows
    std::span<const std::pair<int, int>> gold = {};  ///< known links (source position, target position), to be marked
    std::string_view title = {};

    /// The weight of source word `column` for target word `row`.
    float weight(std::size_t row, std::size_t column) const { return weights[row * source.size() + column]; }

    /// Is source word `column` linked with target word `row`?
    bool is_gold(std::size_t row, std::size_t column) const
    {
        for (const auto& [i, j] : gold)
            if (std::cmp_equal(i, column) && std::cmp_equal(j, row)) return true;
        return false;
    }
};

/// Throws shape_error unless the weights are [S,T] and every gold link is inside.
inline void require_fit(std::string_view where, const alignment& picture)
{
    const std::size_t rows = picture.target.size(), columns = picture.source.size();
    if (picture.weights.size() != rows * columns)
        throw shape_error(std::string(where) + ": " + std::to_string(picture.weights.size()) + " weights, but " +
                          std::to_string(rows) + " target and " + std::to_string(columns) + " source words need " +
                          std::to_string(rows * columns));
    for (const auto& [i, j] : picture.gold)
        if (i < 0 || j < 0 || std::cmp_greater_equal(i, columns) || std::cmp_greater_equal(j, rows))
            throw shape_error(std::string(where) + ": the gold link " + std::to_string(i) + "-" + std::to_string(j) +
                              " lies outside " + std::to_string(columns) + " source and " + std::to_string(rows) +
                              " target words");
}

}  // namespace heed::view
