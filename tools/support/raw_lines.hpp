// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <heed_kit/text/sentence.hpp>

namespace program {

/// Detects untokenized text: lines whose last token is a word with its full stop, such as "sleeping.". In tokenized
/// text, the full stop is a separate token.
class raw_lines {
public:
    /// `known(word)`: words that are correct with a mark.
    void add(const heed::text::sentence& line, const auto& known)
    {
        if (line.empty()) return;
        ++lines_;
        const std::string_view last = line.back();
        const std::size_t end = last.find_last_not_of(".,!?;:\"'");
        if (end == last.npos || end + 1 == last.size() || known(line.back())) return;
        if (raw_++ == 0) example_ = last;
    }
    void add(const heed::text::sentence& line)
    {
        add(line, [](const std::string&) { return false; });
    }

    /// Whether most lines look untokenized.
    bool many() const { return 2 * raw_ > lines_; }

    std::string text() const
    {
        return fmt::format("{} of {} lines end in a word with a mark, such as \"{}\"", raw_, lines_, example_);
    }

private:
    std::size_t lines_ = 0, raw_ = 0;
    std::string example_;
};

}  // namespace program
