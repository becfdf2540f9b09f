// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed_kit/text/corpus.hpp>

#include "../support/output.hpp"

/// Shared by the commands: ranges of options, input and output files.
namespace translation {

using program::check_output;

/// For numeric options: --help omits their range.
inline const CLI::Validator positive = CLI::Range(std::size_t{1}, std::size_t{1} << 20).description("");
inline const CLI::Validator any_number = CLI::Range(std::size_t{0}, std::size_t{1} << 62).description("");
inline const CLI::Validator share = CLI::Range(0.0, 0.95).description("");
// A function, since CLI::PositiveNumber might be initialized later than a variable here.
inline std::string above_zero(const std::string& text)
{
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return !text.empty() && *end == '\0' && value > 0 ? "" : text + " is not a number above 0";
}
/// CLI11's range checks accept "nan": it is neither too small nor too large.
inline std::string number(const std::string& text)
{
    return text.find_first_of("nN") == text.npos ? "" : "is not a number";
}

/// An option with a count; --help shows its default.
inline CLI::Option* add_count(CLI::App& app, const char* name, std::size_t& count, const char* help,
                              const CLI::Validator& range = positive)
{
    return app.add_option(name, count, help)->check(range)->type_name("N")->capture_default_str();
}

/// The models to run.
inline void add_models(CLI::App& app, std::vector<std::filesystem::path>& paths)
{
    app.add_option("--model", paths, "a model trained by `translate train`; several form an ensemble")
        ->required()
        ->take_all()
        ->type_name("FILE");
}

/// --replace-unknown [FILE], with or without a dictionary.
inline CLI::Option* add_replacements(CLI::App& app, std::string& dictionary, const char* help)
{
    return app.add_option("--replace-unknown", dictionary, help)->expected(0, 1)->type_name("[FILE]")->group("Search");
}

/// Throws if --replace-unknown is given for a model without attention.
inline void require_replaceable(bool has_attention, const std::filesystem::path& model)
{
    if (!has_attention)
        throw heed::error(model.string() + ": trained with --attention none, so the source "
                                           "word of an unknown word cannot be determined; omit --replace-unknown");
}

/// Whether two outputs are the same file, even if it does not exist yet.
inline bool same_file(const std::filesystem::path& one, const std::filesystem::path& other)
{
    const auto place = [](const std::filesystem::path& path) {
        return std::filesystem::weakly_canonical(std::filesystem::absolute(heed::io::end_of_links(path)));
    };
    return !one.empty() && !other.empty() && place(one) == place(other);
}

/// Throws if two outputs are the same file. Outputs are given with the names of their options.
inline void check_outputs_apart(const std::vector<std::pair<const char*, std::filesystem::path>>& outputs)
{
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (same_file(outputs[i].second, outputs[j].second))
                throw heed::error(fmt::format("{}: {} and {} are the same file; choose another name for one",
                                              outputs[i].second.string(), outputs[j].first, outputs[i].first));
        }
    }
}

/// The lines of a text; lines may be empty.
inline std::vector<heed::text::sentence> read_lines(const std::filesystem::path& path)
{
    auto lines = heed::text::read_corpus(path, heed::text::empty_lines::keep);
    if (lines.empty()) throw heed::error(path.string() + ": is empty; it must have one sentence per line");
    return lines;
}

/// The lines of two corresponding texts, such as the output and input of `translate run`.
inline heed::text::parallel_corpus read_lines(const std::filesystem::path& source, const std::filesystem::path& target)
{
    auto both = heed::text::read_parallel(source, target, heed::text::empty_lines::keep);
    if (both.size() == 0) throw heed::error(source.string() + ": is empty; it must have one sentence per line");
    return both;
}

/// A file, or standard input if none is named.
class input_text {
public:
    explicit input_text(const std::filesystem::path& path)
        : name_(path.empty() ? "standard input" : path.string()), standard_(path.empty())
    {
        if (!standard_) file_ = heed::text::open_text(path);
    }

    std::istream& stream() { return standard_ ? std::cin : file_; }
    const std::string& name() const { return name_; }

private:
    std::string name_;
    bool standard_;
    std::ifstream file_;
};

}  // namespace translation
