// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed::metrics::detail {

/// Throws unless both texts have as many lines: line n of one belongs to line n of the other. `where` begins the
/// message.
inline void require_as_many(std::string_view where, std::size_t hypotheses, std::size_t references)
{
    if (hypotheses == references) return;
    throw error(std::string(where) + ": " + counted(hypotheses, "hypothesis", "hypotheses") + " but " +
                counted(references, "reference") + "; each sentence needs one of both");
}

/// The same for several sets of references. Throws if there is no set, too.
template <class Text>
void require_as_many(std::string_view where, std::size_t hypotheses, std::span<const std::vector<Text>> references)
{
    if (references.empty())
        throw error(std::string(where) + ": hypotheses without a reference; each sentence needs at least one");
    for (const auto& each : references) require_as_many(where, hypotheses, each.size());
}

/// Line i of each set of references.
template <class Text>
std::vector<Text> line_of(std::span<const std::vector<Text>> references, std::size_t i)
{
    std::vector<Text> result;
    result.reserve(references.size());
    for (const auto& each : references) result.push_back(each[i]);
    return result;
}

}  // namespace heed::metrics::detail
