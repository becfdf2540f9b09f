// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <heed/attention/concepts.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/weigh.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/rows.hpp>

namespace heed::ops {

/// y[b,:] = x[b,:] where the row's truth value is not 0, 0 elsewhere: x [B,N], one truth value per row -> [B,N].
///
///     ∂x[b,:] += ∂y[b,:] of these rows
struct keep_rows_op : move_operation<keep_rows_op, std::span<const std::uint8_t>> {
    static constexpr ranks takes{2, 2};

    static shape_of_rank<2> shape(const auto& x, std::span<const std::uint8_t> rows)
    {
        if (rows.size() != x.shape[0]) {
            throw shape_error("keep_rows: " + std::to_string(rows.size()) + " truth values for the rows of " +
                              shape_text(x.shape) + "; give one for each row");
        }
        return x.shape;
    }

    static void each_move(const auto& x, std::span<const std::uint8_t> rows, auto move)
    {
        detail::each_shown(
            rows.size(), x[1], [&](std::size_t b) { return rows[b] != 0; }, move);
    }
};
inline constexpr keep_rows_op keep_rows{};

}  // namespace heed::ops

/// Helpers of combiners that wrap another one and also read the query.
namespace heed::detail {

/// Base of combiners that are laid over another one: the inner one sums, and `finish(context, positions, at)` makes
/// something of its context, for a whole batch at once. So the inner one's kernel serves, and matrices meet a batch
/// instead of a row.
template <class Self>
struct laid_over_combiner {
    using finishes = Self;

    auto operator()(const tensor auto& given, const tensor auto& values, const auto& at) const  // -> contexts
    {
        const Self& self = static_cast<const Self&>(*this);
        return self.finish(heed::combined(self.inner, given, values, at), shape_of(given)[1], at);
    }
};

/// Which rows may attend to at least one of T positions, in this thread's workspace.
inline std::span<const std::uint8_t> rows_with_positions(std::size_t positions, const auto& at)
{
    const std::size_t B = at.real.batch();
    auto* const has_any = transient_family::take<std::uint8_t>(B);
    std::fill_n(has_any, B, std::uint8_t{0});
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t t = 0; t < at.real[b] && has_any[b] == 0; ++t) {
            has_any[b] = at.masks.is_visible(b * positions + t) ? 1 : 0;
        }
    }
    return {has_any, B};
}

/// x, with 0 in the rows that may attend to nothing.
template <tensor X>
auto clear_rows_without_positions(X x, std::size_t positions, const auto& at)
{
    const auto has_any = rows_with_positions(positions, at);
    const bool all_have = std::find(has_any.begin(), has_any.end(), 0) == has_any.end();
    return all_have ? std::move(x) : ops::keep_rows(x, has_any);
}

}  // namespace heed::detail
