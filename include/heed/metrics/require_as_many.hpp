// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace heed::metrics::detail {

/// "1 sentence", "2 sentences".
inline std::string counted(std::size_t number, std::string_view one, std::string_view several)
{
    return (std::to_string(number) + ' ').append(number == 1 ? one : several);
}

/// Throws unless both texts have as many lines: line n of one belongs to line n of the other. `who` begins the message.
inline void require_as_many(std::string_view who, std::size_t hypotheses, std::size_t references)
{
    if (hypotheses == references) return;
    throw error(std::string(who) + ": " + counted(hypotheses, "hypothesis", "hypotheses") + " but " +
                counted(references, "reference", "references") + "; each sentence needs one of both");
}

}  // namespace heed::metrics::detail
