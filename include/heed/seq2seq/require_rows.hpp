// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <heed/core/errors.hpp>

namespace heed::seq2seq::detail {

/// Throws unless there is one row per sentence, as at the start of a search. `where` begins the message.
inline void require_rows(std::string_view where, std::size_t sentences, std::size_t rows)
{
    if (sentences == rows) return;
    throw error(std::string(where) + ": " + counted(sentences, "sentence") + ", but the model is at work on " +
                counted(rows, "row") +
                "; give the lengths of the batch that it was made for, and make it anew for each search");
}

/// Throws unless there is this row. `where` begins the message.
inline void require_row(std::string_view where, std::size_t row, std::size_t rows)
{
    if (row < rows) return;
    throw error(std::string(where) + ": row " + std::to_string(row) + " of " + std::to_string(rows) +
                "; rows count from 0");
}

}  // namespace heed::seq2seq::detail
