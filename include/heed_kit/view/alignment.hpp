// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace heed::inline HEED_TARGET::view {

namespace detail {

/// A span of a named object: rejects temporaries that own their elements.
template <class T>
struct span_of_named : std::span<const T> {
    span_of_named() = default;
    template <class R>
        requires(std::convertible_to<R, std::span<const T>>)
    span_of_named(R&& of) : std::span<const T>(of)
    {
        static_assert(
            std::is_lvalue_reference_v<R> || std::ranges::enable_borrowed_range<std::remove_cvref_t<R>>,
            "heed: an alignment refers to its weights and words, but this is a temporary that is destroyed at "
            "the end of the statement: store it in a variable first");
    }
};

/// As above for a text.
struct text_of_named : std::string_view {
    text_of_named() = default;
    text_of_named(const char* text) : std::string_view(text) {}
    text_of_named(std::string_view text) : std::string_view(text) {}
    text_of_named(const std::string& text) : std::string_view(text) {}
    text_of_named(const std::string&&) = delete;
};

}  // namespace detail

/// The data of a picture of one sentence pair: the attention of each target word to each source word. It refers to the
/// caller's data without copying, and does not accept temporaries.
struct alignment {
    detail::span_of_named<float> weights;  ///< [S,T], row-major: row j has the weights of target word j over the source
    detail::span_of_named<std::string> source;             ///< T words, the columns
    detail::span_of_named<std::string> target;             ///< S words, the rows
    detail::span_of_named<std::pair<int, int>> gold = {};  ///< links (source, target position) to be marked
    detail::text_of_named title = {};

    /// The weight of source word `column` for target word `row`.
    float weight(std::size_t row, std::size_t column) const { return weights[row * source.size() + column]; }

    /// Whether source word `column` is linked to target word `row`.
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
        throw shape_error(std::string(where) + ": " + counted(picture.weights.size(), "weight") + ", but " +
                          std::to_string(rows) + " target and " + counted(columns, "source word") + " need " +
                          std::to_string(rows * columns));
    for (const auto& [i, j] : picture.gold)
        if (i < 0 || j < 0 || std::cmp_greater_equal(i, columns) || std::cmp_greater_equal(j, rows))
            throw shape_error(std::string(where) + ": the gold link " + std::to_string(i) + "-" + std::to_string(j) +
                              " is outside " + std::to_string(columns) + " source and " + counted(rows, "target word"));
}

}  // namespace heed::inline HEED_TARGET::view
