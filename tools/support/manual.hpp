// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/utf8.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/version.hpp>

#include "declared.hpp"

/// Manual pages (man1) of a program with subcommands, made of what --help knows: a page for the program and one for
/// each of its commands, `translate-train.1`.
namespace program {

/// What --help does not say: sections by command, each a title and a text as --help has it. "" is the program's own
/// page; "*" is all pages.
using manual_sections = std::map<std::string, std::vector<std::pair<std::string, std::string>>>;

/// Text as roff: nothing in it is a request, and a dash stays one that can be copied into a shell.
inline std::string roff(std::string_view text)
{
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (text[i] == '\\') {
            result += "\\e";
        } else if (text[i] == '-') {
            result += "\\-";
        } else if (text[i] == '\'') {
            result += "\\(aq";
        } else if (text[i] == '`') {
            result += "\\(ga";
        } else if (text[i] == '^') {
            result += "\\(ha";
        } else if (text[i] == '~') {
            result += "\\(ti";
        } else if (text[i] == '.' && (i == 0 || text[i - 1] == '\n')) {
            result += "\\&.";
        } else if (byte < 0x80) {
            result += text[i];
        } else {
            // The sources are valid UTF-8.
            const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
            std::uint32_t code = byte & (0xffu >> (length + 1));
            for (std::size_t k = 1; k < length; ++k)
                code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fu);
            result += fmt::format("\\[u{:04X}]", code);
            i += length - 1;
        }
    }
    return result;
}

/// The same for running text: `commands` and --options are bold.
inline std::string roff_prose(std::string_view text)
{
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    std::string result;
    std::size_t plain = 0;
    const auto flush = [&](std::size_t end) { result += roff(text.substr(plain, end - plain)); };
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i, next = i;
        if (text[i] == '`') {
            end = text.find('`', i + 1);
            if (end == text.npos) break;
            next = end + 1;
        } else if (text.substr(i).starts_with("--") && i + 2 < text.size() && is_word(text[i + 2]) &&
                   (i == 0 || !is_word(text[i - 1]))) {
            for (end = i + 2; end < text.size() && (is_word(text[end]) || text[end] == '-');) ++end;
            next = end;
        }
        if (end == i) {
            ++i;
            continue;
        }
        flush(i);
        const std::size_t begin = text[i] == '`' ? i + 1 : i;
        result += "\\fB" + roff(text.substr(begin, end - begin)) + "\\fR";
        i = plain = next;
    }
    flush(text.size());
    return result;
}

/// A text of --help as roff. Its lines are filled anew, except in a paragraph with a line that is indented or set in
/// columns.
inline std::string roff_paragraphs(const std::string& text, const std::string& between = ".PP\n")
{
    std::string result;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find("\n\n", begin), text.size());
        const std::string paragraph = text.substr(begin, end - begin);
        begin = std::min(end + 2, text.size());
        if (!result.empty()) result += between;
        if (paragraph.find("  ") == paragraph.npos) {
            std::string filled = paragraph;
            std::replace(filled.begin(), filled.end(), '\n', ' ');
            result += roff_prose(filled) + '\n';
        } else {
            // The heading of an example is filled.
            const std::size_t heading = paragraph.find(":\n  ");
            const bool has_heading = heading != paragraph.npos && paragraph.find('\n') == heading + 1;
            if (has_heading) result += roff_prose(paragraph.substr(0, heading + 1)) + '\n';
            result += ".nf\n" + roff(has_heading ? paragraph.substr(heading + 2) : paragraph) + "\n.fi\n";
        }
    }
    return result;
}

/// One page.
class manual_page {
public:
    /// `name`: "translate train". `date`: of the release, as 2026-11-23.
    manual_page(const std::string& name, const std::string& date) : name_(name)
    {
        std::string title = file_name();
        std::transform(title.begin(), title.end(), title.begin(),
                       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        text_ = ".\\\" Made by the program itself from what it has declared.\n";
        text_ += fmt::format(".TH {} 1 \"{}\" \"heed {}\" \"User Commands\"\n", roff(title), date, HEED_VERSION_STRING);
    }

    /// "translate-train"
    std::string file_name() const
    {
        std::string file = name_;
        std::replace(file.begin(), file.end(), ' ', '-');
        return file;
    }

    void section(const std::string& title) { text_ += ".SH " + roff(title) + '\n'; }
    void prose(const std::string& text) { text_ += roff_paragraphs(text); }
    void raw(const std::string& text) { text_ += text; }

    void write(const std::filesystem::path& folder) const
    {
        heed::io::write_file(folder / (file_name() + ".1"), text_);
    }

private:
    std::string name_, text_;
};

/// An option as a tagged paragraph.
inline std::string option_paragraph(const declared& one)
{
    const auto bold = [](const std::string& text) { return "\\fB" + roff(text) + "\\fR"; };
    const auto slanted = [](const std::string& text) { return "\\fI" + roff(text) + "\\fR"; };
    std::string tag = one.argument ? slanted(one.name) : bold(one.name);
    if (!one.short_name.empty()) tag = bold(one.short_name) + ", " + tag;
    if (!one.argument && !one.type.empty())
        tag += one.value_may_lack ? " [" + slanted(one.type) + "]" : " " + slanted(one.type);
    if (one.argument && one.repeated) tag += "\\&...";
    std::string text = ".TP\n" + tag + '\n' + roff_paragraphs(one.help, ".IP\n");
    const auto list = [](const std::vector<std::string>& names) {
        std::string all;
        for (const std::string& each : names) all += (all.empty() ? "" : ", ") + each;
        return all;
    };
    std::string notes;
    const auto note = [&](const std::string& what) { notes += (notes.empty() ? "" : " ") + what; };
    if (one.required) note("Required.");
    if (one.repeated && !one.argument) note("May be given several times.");
    if (!one.choices.empty()) note("One of: " + list(one.choices) + ".");
    if (!one.preset.empty()) note("Default: " + one.preset + ".");
    if (!one.needs.empty()) note("Only with " + list(one.needs) + ".");
    if (!one.excludes.empty()) note("Not with " + list(one.excludes) + ".");
    if (!notes.empty()) text += ".IP\n" + roff_prose(notes) + '\n';
    return text;
}

/// Writes the page of a command, and those of its subcommands. `name`: "translate train"; `related`: further pages for
/// SEE ALSO.
inline void write_manual(CLI::App& command, const std::string& name, const std::filesystem::path& folder,
                         const manual_sections& more, const std::string& date, std::vector<std::string> related)
{
    manual_page page(name, date);
    const std::vector<declared> options = options_of(command);
    const std::vector<CLI::App*> subcommands = commands_of(command);

    page.section("NAME");
    std::string summary = first_sentence(command.get_description());
    if (const std::size_t colon = summary.find(": "); colon != summary.npos && summary.size() > 90)
        summary.resize(colon);
    page.raw(roff(page.file_name()) + " \\- " + roff(summary) + '\n');

    page.section("SYNOPSIS");
    std::string usage = ".B " + roff(name) + '\n';
    bool choice = false;
    for (const declared& one : options) {
        if (one.argument) continue;
        if (!one.required) {
            choice = true;
            continue;
        }
        usage += "\\fB" + roff(one.name) + "\\fR \\fI" + roff(one.type) + "\\fR" + (one.repeated ? " ...\n" : "\n");
    }
    if (choice) usage += "[\\fIoptions\\fR]\n";
    for (const declared& one : options) {
        if (!one.argument) continue;
        const std::string word = "\\fI" + roff(one.name) + "\\fR" + (one.repeated ? "..." : "");
        usage += one.required ? word + '\n' : "[" + word + "]\n";
    }
    if (!subcommands.empty()) usage += "\\fIcommand\\fR\n";
    page.raw(usage);

    // The end of --help: text, then examples.
    std::string footer = command.get_footer(), examples;
    const std::size_t at = footer.find("Example");
    if (at != footer.npos && (at == 0 || footer[at - 1] == '\n') && footer.find(':', at) != footer.npos) {
        examples = footer.substr(footer.find('\n', at) + 1);
        footer.resize(at);
    }
    while (footer.ends_with('\n')) footer.pop_back();
    page.section("DESCRIPTION");
    page.prose(command.get_description() + (footer.empty() ? "" : "\n\n" + footer));

    if (!subcommands.empty()) {
        page.section("COMMANDS");
        for (const CLI::App* each : subcommands) {
            std::string file = page.file_name() + "-" + each->get_name();
            page.raw(".TP\n\\fB" + roff(file) + "\\fR(1)\n" + roff_paragraphs(each->get_description(), ".IP\n"));
        }
    }

    page.section("OPTIONS");
    std::vector<std::string> groups;
    for (const declared& one : options) {
        if (std::find(groups.begin(), groups.end(), one.group) == groups.end()) groups.push_back(one.group);
    }
    const auto is_plain = [](const std::string& group) { return group == "Options"; };
    std::stable_partition(groups.begin(), groups.end(), [&](const std::string& group) { return !is_plain(group); });
    for (const declared& one : options) {
        if (one.argument) page.raw(option_paragraph(one));
    }
    for (const std::string& group : groups) {
        if (groups.size() > 1) page.raw(".SS " + roff(is_plain(group) ? "Further options" : group) + '\n');
        for (const declared& one : options) {
            if (one.group == group && !one.argument) page.raw(option_paragraph(one));
        }
    }

    if (!examples.empty()) {
        page.section("EXAMPLES");
        page.raw(".nf\n" + roff(examples) + (examples.ends_with('\n') ? "" : "\n") + ".fi\n");
    }
    page.section("EXIT STATUS");
    page.raw(".TP\n0\nsuccess\n"
             ".TP\n1\nan error; standard error says what was wrong, where, and what would be right\n"
             ".TP\n2\nwrong options or arguments, or some that do not go together\n"
             ".TP\n128 + \\fIn\\fR\nended by signal \\fIn\\fR, as by Ctrl\\-C\n");
    for (const std::string& key :
         {command.get_parent() == nullptr ? std::string() : command.get_name(), std::string("*")}) {
        const auto found = more.find(key);
        if (found == more.end()) continue;
        for (const auto& [title, text] : found->second) {
            page.section(title);
            page.prose(text);
        }
    }

    std::vector<std::string> siblings;
    if (command.get_parent() != nullptr) siblings.push_back(name.substr(0, name.rfind(' ')));
    for (const CLI::App* each : subcommands) siblings.push_back(name + ' ' + each->get_name());
    siblings.insert(siblings.end(), related.begin(), related.end());
    if (!siblings.empty()) {
        page.section("SEE ALSO");
        for (std::string& each : siblings) {
            std::replace(each.begin(), each.end(), ' ', '-');
            page.raw(".BR " + roff(each) + " (1)" + (&each == &siblings.back() ? "\n" : ",\n"));
        }
    }
    page.write(folder);
    for (CLI::App* each : subcommands) write_manual(*each, name + ' ' + each->get_name(), folder, more, date, related);
}

}  // namespace program
