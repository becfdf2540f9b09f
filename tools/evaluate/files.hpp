// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed_kit/text/corpus.hpp>

#include "../support/output.hpp"

namespace evaluation {

using heed::text::sentence;

/// A file name and its contents: one sentence per line. Lines may be empty, since translations may be.
struct corpus {
    std::string name;
    std::vector<sentence> lines;
};

/// The lines of a file in order. "-" is standard input.
class line_source {
public:
    explicit line_source(const std::string& name) : name_(name == "-" ? "standard input" : name)
    {
        static bool done = false;
        if (name == "-" && std::exchange(done, true))
            throw heed::error("standard input can be read only once; - was given twice");
        if (name != "-") file_ = heed::text::open_text(name);
        reader_.emplace(name == "-" ? std::cin : file_, name_, heed::text::empty_lines::keep);
    }
    /// The lines of a file that has already been read.
    explicit line_source(const corpus& kept) : name_(kept.name), kept_(&kept) {}
    line_source(const line_source&) = delete;
    line_source& operator=(const line_source&) = delete;

    const std::string& name() const { return name_; }
    /// Number of lines read so far.
    std::size_t lines() const { return lines_; }

    bool next(sentence& words)
    {
        if (kept_ != nullptr && lines_ < kept_->lines.size())
            words = kept_->lines[lines_];
        else if (kept_ != nullptr || !reader_->next(words))
            return false;
        ++lines_;
        return true;
    }

private:
    std::string name_;
    std::ifstream file_;
    std::optional<heed::text::sentence_reader> reader_;
    const corpus* kept_ = nullptr;
    std::size_t lines_ = 0;
};

/// The number of lines of a file, for its progress; 0 if it is not a regular file and can only be read once.
inline std::size_t count_lines(const std::string& name)
{
    std::error_code not_there;
    if (name == "-" || !std::filesystem::is_regular_file(name, not_there)) return 0;
    std::ifstream file(name, std::ios::binary);
    std::vector<char> some(std::size_t{1} << 16);
    std::size_t lines = 0;
    char last = '\n';
    while (file.read(some.data(), static_cast<std::streamsize>(some.size())) || file.gcount() > 0) {
        lines += static_cast<std::size_t>(std::count(some.data(), some.data() + file.gcount(), '\n'));
        last = some[static_cast<std::size_t>(file.gcount() - 1)];
    }
    return lines + (last == '\n' ? 0 : 1);
}

inline void require_lines(const std::string& name, std::size_t lines)
{
    if (lines == 0) throw heed::error(name + ": is empty; it must have one sentence per line");
}

/// The whole file. "-" is standard input.
inline corpus read(const std::string& name)
{
    line_source source(name);
    corpus result{source.name(), {}};
    for (sentence words; source.next(words);) result.lines.push_back(std::move(words));
    require_lines(result.name, result.lines.size());
    return result;
}

inline std::vector<corpus> read(const std::vector<std::string>& names)
{
    std::vector<corpus> result;
    for (const std::string& name : names) result.push_back(read(name));
    return result;
}

/// Checks that line n of one file corresponds to line n of the other.
inline void require_as_many(const std::string& name, std::size_t lines, const std::string& other,
                            std::size_t other_lines)
{
    if (lines != other_lines)
        throw heed::error(
            fmt::format("{} has {}, {} has {}; the numbers must be equal, since line n of one belongs to line n "
                        "of the other",
                        name, heed::counted(lines, "line"), other, other_lines));
}

inline void require_as_many(const std::string& name, std::size_t lines, const corpus& other)
{
    require_as_many(name, lines, other.name, other.lines.size());
}

/// Sets of references: line n of each set corresponds to line n of the others.
inline std::vector<corpus> read_references(const std::vector<std::string>& names)
{
    std::vector<corpus> result = read(names);
    for (const corpus& each : result) require_as_many(each.name, each.lines.size(), result.front());
    return result;
}

/// Reads a system's lines together with those of its references in chunks, so that a large text does not have to fit in
/// memory. The references are read again for each system, unless they come from a pipe.
class side_by_side {
public:
    side_by_side(const std::vector<std::string>& references, std::size_t systems) : references_(references)
    {
        for (const std::string& each : references) {
            std::error_code not_there;
            const bool again = systems == 1 || (each != "-" && std::filesystem::is_regular_file(each, not_there));
            kept_.push_back(again ? std::nullopt : std::optional(read(each)));
        }
    }

    /// Calls work(system, references) for successive chunks until all lines are read; returns the number of lines.
    /// Throws heed::error unless all files have the same number of lines.
    template <class Work>
    std::size_t operator()(const std::string& system, const Work& work) const
    {
        std::deque<line_source> sources;  // the references, then the system
        for (std::size_t i = 0; i < references_.size(); ++i)
            kept_[i] ? sources.emplace_back(*kept_[i]) : sources.emplace_back(references_[i]);
        sources.emplace_back(system);
        std::vector<corpus> golden(references_.size());
        corpus judged{sources.back().name(), {}};
        bool more = true;
        while (more) {
            for (std::size_t i = 0; i < sources.size(); ++i) {
                std::vector<sentence>& lines = i < golden.size() ? golden[i].lines : judged.lines;
                lines.clear();
                for (sentence words; lines.size() < at_a_time && sources[i].next(words);)
                    lines.push_back(std::move(words));
            }
            for (const corpus& each : golden) more = more && each.lines.size() == judged.lines.size();
            if (!more) break;
            if (!judged.lines.empty()) work(judged, golden);
            more = judged.lines.size() == at_a_time;
        }
        for (line_source& each : sources) {  // all lines, for the message
            for (sentence words; each.next(words);) {}
            require_lines(each.name(), each.lines());
        }
        for (const line_source& each : sources)
            require_as_many(each.name(), each.lines(), sources.front().name(), sources.front().lines());
        return sources.back().lines();
    }

private:
    static constexpr std::size_t at_a_time = 16384;

    std::vector<std::string> references_;
    std::vector<std::optional<corpus>> kept_;
};

inline void check_output(const std::string& output, const std::vector<std::string>& inputs)
{
    program::check_output(output, {inputs.begin(), inputs.end()});
}

/// The lines joined into text, for character-based metrics.
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

/// The lines of each file, in the layout of metrics with several references.
inline std::vector<std::vector<sentence>> lines_of(const std::vector<corpus>& files)
{
    std::vector<std::vector<sentence>> result;
    for (const corpus& each : files) result.push_back(each.lines);
    return result;
}

}  // namespace evaluation
