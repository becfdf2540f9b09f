// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <heed/text/sentence.hpp>
#include <heed/translator/language.hpp>

#include "progress.hpp"

namespace translation {

/// Lines of text that end in a word and its full stop, as "sleeping.", in one token: text that nobody has cut into
/// tokens. Tokenised text has the stop by itself.
class raw_lines {
public:
    raw_lines() = default;
    explicit raw_lines(const std::vector<heed::text::sentence>& lines)
    {
        for (const heed::text::sentence& each : lines) add(each, [](const std::string&) { return false; });
    }

    /// `known(word)`: a word that is as it should be.
    void add(const heed::text::sentence& line, const auto& known)
    {
        if (line.empty()) return;
        ++lines_;
        const std::string_view last = line.back();
        const std::size_t end = last.find_last_not_of(".,!?;:\"'");
        if (end == last.npos || end + 1 == last.size() || known(line.back())) return;
        if (raw_++ == 0) example_ = last;
    }

    /// Lines for this model.
    void add(const std::vector<heed::text::sentence>& lines, const heed::translator::language& model)
    {
        if (model.in_pieces()) return;
        for (const heed::text::sentence& each : lines)
            add(each, [&](const std::string& word) { return model.vocabulary.contains(word); });
    }

    /// Whether most lines are such.
    bool many() const { return 2 * raw_ > lines_; }

    /// What is said of them to a model of words.
    std::string note() const
    {
        return fmt::format("note: {}, which the model does not know. Its training text had tokens, words with spaces "
                           "around them: cut this text likewise, or train with --raw",
                           text());
    }

    std::string text() const
    {
        return fmt::format("{} of {} lines end in a word with a mark, such as \"{}\"", raw_, lines_, example_);
    }

private:
    std::size_t lines_ = 0, raw_ = 0;
    std::string example_;
};

/// Says so if these lines are raw text, and the model has learned words.
inline void note_raw_lines(const std::vector<heed::text::sentence>& lines, const heed::translator::language& model)
{
    raw_lines seen;
    seen.add(lines, model);
    if (seen.many()) say(seen.note());
}

}  // namespace translation
