// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include <heed_kit/text/sentence.hpp>
#include <heed_translator/language.hpp>

#include "../support/raw_lines.hpp"
#include "progress.hpp"

namespace translation {

/// Detects untokenized lines given to a model of words.
class raw_lines : public program::raw_lines {
public:
    using program::raw_lines::add;

    raw_lines() = default;
    explicit raw_lines(const std::vector<heed::text::sentence>& lines)
    {
        for (const heed::text::sentence& each : lines) add(each);
    }

    /// Lines for this model.
    void add(const std::vector<heed::text::sentence>& lines, const heed::translator::language& model)
    {
        if (model.in_pieces()) return;
        for (const heed::text::sentence& each : lines)
            add(each, [&](const std::string& word) { return model.vocabulary.contains(word); });
    }

    /// The note about these lines for a model of words.
    std::string note() const
    {
        return fmt::format(
            "note: {}; such words are not in the model's vocabulary. It was trained on tokens separated by spaces: "
            "tokenize this text the same way, or train with --raw",
            text());
    }
};

/// Prints a note if these lines are raw text and the model has learned words.
inline void note_raw_lines(const std::vector<heed::text::sentence>& lines, const heed::translator::language& model)
{
    raw_lines seen;
    seen.add(lines, model);
    if (seen.many()) say(seen.note());
}

}  // namespace translation
