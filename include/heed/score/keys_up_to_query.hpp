// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>

#include <heed/core/errors.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/workspace_tensor.hpp>
#include <heed/policy/query_numbers.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/state.hpp>

namespace heed::inline HEED_TARGET::ops::detail {

/// Throws shape_error unless each row has a count, and either all rows or none have a first key.
inline void require_places(const char* where, const lengths_view& count, const lengths_view& first, std::size_t rows)
{
    if (count.batch() != rows || (first.batch() != rows && first.batch() != 0)) {
        throw shape_error(std::string(where) + ": " + std::to_string(count.batch()) + " counts of keys and " +
                          std::to_string(first.batch()) + " first keys for " + counted(rows, "row") +
                          "; each row has a count, and either all rows or none have a first key");
    }
}

/// The number of keys of row r, out of `positions`, that are no later than the query.
inline std::size_t keys_of_row(const lengths_view& count, const lengths_view& first, std::size_t r,
                               std::size_t positions)
{
    const std::size_t begin = first.batch() == 0 ? 0 : first[r];
    return count[r] > begin ? std::min(count[r] - begin, positions) : 0;
}

}  // namespace heed::inline HEED_TARGET::ops::detail

namespace heed::inline HEED_TARGET::score {

/// The number of keys up to the query's own, for each row: the i-th query is at the i-th position of the memory, or at
/// the last one if there are fewer. A state without tensors; in a window it also holds the first key of each row.
struct keys_up_to_query {
    static constexpr bool holds_no_tensors = true;

    lengths_view count{};
    lengths_view first{};  // the number of the first key of each row; empty: 0

    keys_up_to_query map(auto&& f, const auto&...) const
    {
        auto there = *this;
        if constexpr (requires { f.part(count); }) {
            if (count.batch() > 0) there.count = f.part(count);
        }
        if constexpr (cuts_out_windows<decltype(f)>) there.first = {f.where.begin, f.where.count.batch()};
        return there;
    }

    /// For query number `step`, as in `recall`. Throws shape_error if it would come before the first key of a sentence
    /// of a KV cache.
    static keys_up_to_query of_step(std::size_t step, const auto& memory)
    {
        return at(1, memory.real, [&](std::size_t n, std::size_t) {
            if constexpr (detail::keys_grow<std::remove_cvref_t<decltype(memory.keys)>>) {
                return detail::number_in_sentence(step, n, memory.positions);
            } else {
                return step;
            }
        });
    }

    /// For `queries` queries of each sentence, [B·S], as in `score_matrix`.
    static keys_up_to_query of_all(const over::queries_from& from, std::size_t queries)
    {
        return at(queries, from.real, [&](std::size_t, std::size_t s) { return from.first + s; });
    }

private:
    static keys_up_to_query at(std::size_t queries, const lengths_view& real, const auto& number)
    {
        const std::size_t rows = real.batch() * queries;
        auto* const count = workspace_family::take<std::size_t>(rows);
        for (std::size_t i = 0; i < rows; ++i) {
            const std::size_t n = real[i / queries];
            count[i] = n == 0 ? 0 : std::min(number(n, i % queries), n - 1) + 1;
        }
        return {{count, rows}, {}};
    }
};

}  // namespace heed::inline HEED_TARGET::score
