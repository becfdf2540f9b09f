// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/require_as_many.hpp>
#include <heed_kit/metrics/tokenize_13a.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Several references of a sentence, for all metrics. Texts such as E2E and WebNLG have more references for some
/// sentences than for others; in their files, an empty line marks a missing reference. Therefore:
///
///   - a reference without words is ignored if another reference of the same sentence has words;
///   - if all references of a sentence are empty, its reference is the empty sentence, as with a single file.
namespace heed::inline HEED_TARGET::metrics::detail {

/// Whether a reference has no words: an empty line, or only white space.
inline bool is_empty_reference(const text::sentence& reference) { return reference.empty(); }
inline bool is_empty_reference(std::string_view line) { return !has_word(line); }

/// Calls see(reference) for each reference of one sentence that is present, in order: at least once. Throws heed::error
/// if the list is empty; `where` begins the message.
template <class Text, class See>
void for_each_reference(std::string_view where, std::span<const Text> references, const See& see)
{
    if (references.empty())
        throw error(std::string(where) + ": a hypothesis has no reference; at least one is required");
    bool any = false;
    for (const Text& each : references) {
        if (is_empty_reference(each)) continue;
        any = true;
        see(each);
    }
    if (!any) see(references.front());
}

/// Throws heed::error unless there is a set of references, and each set has the same number of lines as the hypotheses.
template <class Text>
void require_as_many(std::string_view where, std::size_t hypotheses, std::span<const std::vector<Text>> references)
{
    if (references.empty()) throw error(std::string(where) + ": no references; each sentence requires at least one");
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

}  // namespace heed::inline HEED_TARGET::metrics::detail
