// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed_kit/text/sentence.hpp>

#include "bars.hpp"

namespace program {

/// A line of an n-best list, as Moses and many others write it: "index ||| translation ||| score score ...". A word
/// "|||" of the translation is written as in bars.hpp.
struct nbest_line {
    std::size_t index = 0;  // of the sentence, from 0
    heed::text::sentence words, scores;
};

/// The line without a line break. `scores`: numbers separated by spaces. parse_nbest() is the inverse.
inline std::string nbest_text(std::size_t index, std::string_view translation, std::string_view scores)
{
    return fmt::format("{} ||| {} ||| {}", index, written_line(translation), scores);
}

/// Throws heed::error for invalid lines; `where` begins its message.
inline nbest_line parse_nbest(const heed::text::sentence& tokens, const std::string& where)
{
    std::vector<heed::text::sentence> parts(1);
    for (const std::string& token : tokens) {
        if (token == bars)
            parts.emplace_back();
        else
            parts.back().push_back(token);
    }
    nbest_line result;
    bool good = parts.size() == 3 && parts[0].size() == 1;
    if (good) {
        const std::string& text = parts[0].front();
        const auto read = std::from_chars(text.data(), text.data() + text.size(), result.index);
        good = read.ec == std::errc{} && read.ptr == text.data() + text.size();
    }
    if (!good)
        throw heed::error(where +
                          ": expected a line of an n-best list: index ||| translation ||| score, with spaces around "
                          "each |||");
    for (const std::string& word : parts[1]) result.words.push_back(read_word(word));
    result.scores = std::move(parts[2]);
    return result;
}

}  // namespace program
