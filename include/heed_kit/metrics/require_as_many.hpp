// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace heed::inline HEED_TARGET::metrics::detail {

/// Throws heed::error unless both texts have the same number of lines: line n of one corresponds to line n of the
/// other. `where` begins the message.
inline void require_as_many(std::string_view where, std::size_t hypotheses, std::size_t references)
{
    if (hypotheses == references) return;
    throw error(std::string(where) + ": " + counted(hypotheses, "hypothesis", "hypotheses") + " but " +
                counted(references, "reference") + "; expected one of each per sentence");
}

}  // namespace heed::inline HEED_TARGET::metrics::detail
