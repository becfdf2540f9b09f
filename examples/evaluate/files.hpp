// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/text/corpus.hpp>

namespace evaluation {

using heed::text::sentence;

/// The contents of a file and its name: one sentence per line. A line may be empty, since a translation may be.
struct corpus {
    std::string name;
    std::vector<sentence> lines;
};

/// "-" is standard input.
inline corpus read(const std::string& name)
{
    using heed::text::empty_lines;
    corpus result;
    if (name == "-") {
        static bool done = false;
        result.name = "standard input";
        if (std::exchange(done, true)) throw heed::error("standard input: can only be read once; - was given twice");
        result.lines = heed::text::read_corpus(std::cin, result.name, empty_lines::keep);
    } else {
        result.name = name;
        result.lines = heed::text::read_corpus(std::filesystem::path(name), empty_lines::keep);
    }
    if (result.lines.empty()) throw heed::error(result.name + ": is empty; it must have one sentence per line");
    return result;
}

inline std::vector<corpus> read(const std::vector<std::string>& names)
{
    std::vector<corpus> result;
    for (const std::string& name : names) result.push_back(read(name));
    return result;
}

/// Line n of one file belongs to line n of the other.
inline void require_as_many(const std::string& name, std::size_t lines, const corpus& other)
{
    if (lines != other.lines.size())
        throw heed::error(
            fmt::format("{} has {}, {} has {}; they need the same number, since line n of one belongs to line n "
                        "of the other",
                        name, heed::counted(lines, "line"), other.name, other.lines.size()));
}

/// Sets of references: line n of each belongs to line n of the others.
inline std::vector<corpus> read_references(const std::vector<std::string>& names)
{
    std::vector<corpus> result = read(names);
    for (const corpus& each : result) require_as_many(each.name, each.lines.size(), result.front());
    return result;
}

/// Refuses to overwrite an input, and reports at once if an output cannot be written.
inline void check_output(const std::string& output, const std::vector<std::string>& inputs)
{
    for (const std::string& input : inputs) {
        std::error_code not_there;
        if (std::filesystem::equivalent(output, input, not_there))
            throw heed::error(output + ": would overwrite an input; give it another name");
    }
    heed::io::atomic_file{output};
}

/// The lines as text again, for character-based metrics.
inline std::vector<std::string> text_of(const corpus& file)
{
    std::vector<std::string> lines;
    lines.reserve(file.lines.size());
    for (const sentence& words : file.lines) lines.push_back(heed::text::join(words));
    return lines;
}

inline std::vector<std::vector<std::string>> text_of(const std::vector<corpus>& files)
{
    std::vector<std::vector<std::string>> result;
    for (const corpus& each : files) result.push_back(text_of(each));
    return result;
}

/// The lines of each file, as the metrics take several references.
inline std::vector<std::vector<sentence>> lines_of(const std::vector<corpus>& files)
{
    std::vector<std::vector<sentence>> result;
    for (const corpus& each : files) result.push_back(each.lines);
    return result;
}

}  // namespace evaluation
