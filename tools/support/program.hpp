// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed/version.hpp>

#include "completion.hpp"
#include "manual.hpp"
#include "misuse.hpp"
#include "output.hpp"

/// Shared by programs with subcommands.
namespace program {

/// Convention for "..." in --help: the argument before it may be given several times in a row, as in FILE... . Only
/// positional arguments use it; an option takes one value, and its help states whether the option may be repeated.
class formatter : public CLI::Formatter {
public:
    formatter() { column_width(33); }

    std::string make_option_opts(const CLI::Option* option) const override
    {
        if (option->get_positional()) return several(option) ? "..." : "";
        if (option->get_type_size() == 0) return CLI::Formatter::make_option_opts(option);
        std::string text = " " + option->get_type_name();
        if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
        if (option->get_required()) text += " " + get_label("REQUIRED");
        for (const CLI::Option* needed : option->get_needs()) text += " Needs: " + needed->get_name();
        return text;
    }

    std::string make_option_usage(const CLI::Option* option) const override
    {
        const std::string text = make_option_name(option, true) + (several(option) ? "..." : "");
        return option->get_required() ? text : "[" + text + "]";
    }

private:
    static bool several(const CLI::Option* option) { return option->get_expected_max() > 1; }
};

inline void ask_for_threads(CLI::App& app, std::size_t& threads)
{
    app.add_option("--threads", threads, "number of threads; 0: all hardware threads")
        ->check(CLI::Range(std::size_t{0}, std::size_t{256}).description(""))
        ->type_name("N")
        ->capture_default_str();
}

/// Makes repeated options take one value each time, in this command and its subcommands.
inline void one_value_each(CLI::App& app)
{
    for (CLI::Option* option : app.get_options()) {
        if (option->nonpositional() && option->get_expected_max() > 1) option->allow_extra_args(false);
    }
    for (CLI::App* command : app.get_subcommands({})) one_value_each(*command);
}

/// Represents an empty value during parsing: CLI11 confuses `--option ""` with `--option`, and reads the next argument
/// as the value of `--option=`. Arguments cannot contain a NUL.
inline const std::string empty_value("\"\"\0", 3);

/// The arguments in reverse order, as CLI::App::parse requires.
inline std::vector<std::string> arguments(int argc, char** argv)
{
    std::vector<std::string> all;
    for (int i = 1; i < argc; ++i) {
        const std::string_view text = argv[i];
        const bool nothing_assigned = text.starts_with("--") && text.find('=') == text.size() - 1;
        if (!text.empty()) all.emplace_back(text.substr(0, text.size() - (nothing_assigned ? 1 : 0)));
        if (text.empty() || nothing_assigned) all.push_back(empty_value);
    }
    std::reverse(all.begin(), all.end());
    return all;
}

/// Makes options and arguments of type FILE reject empty paths, in this command and its subcommands.
inline void refuse_empty_paths(CLI::App& app)
{
    for (CLI::Option* option : app.get_options()) {
        if (option->get_type_size() == 0) continue;  // a flag
        const bool is_path = option->get_type_name().find("FILE") != std::string::npos;
        option->transform(CLI::Validator(
            [is_path](std::string& text) -> std::string {
                if (text != empty_value) return "";
                text.clear();
                return is_path ? "the path is empty; name a file" : "";
            },
            ""));
    }
    for (CLI::App* command : app.get_subcommands({})) refuse_empty_paths(*command);
}

/// The innermost command given.
inline const CLI::App& innermost(const CLI::App& app)
{
    return app.get_subcommands().empty() ? app : innermost(*app.get_subcommands().front());
}

/// The error message for a command line without a subcommand.
inline std::string missing_subcommand(const CLI::App& app)
{
    std::string names;
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
        names += (names.empty() ? "" : ", ") + each->get_name();
    const std::vector<std::string> given = app.remaining();
    if (given.empty()) return "missing subcommand; choose from " + names;
    const std::string first = heed::text::printable(given.front().c_str());  // empty_value reads ""
    if (first.starts_with('-'))
        return first + " is not an option of the program; options follow their subcommand: " + names;
    return first + " is not a subcommand; choose from " + names;
}

/// The error message for an unknown option of the innermost command; empty if all are known. An unknown option may be
/// the cause of another error, such as a missing one: --modle for --model.
inline std::string unknown_option(const CLI::App& app, const std::string& name)
{
    const CLI::App& at = innermost(app);
    const std::vector<std::string> given = app.remaining(true);
    const auto found = std::find_if(given.begin(), given.end(), [](const std::string& each) {
        return each.size() > 1 && each.starts_with('-') && each != "--";
    });
    if (found == given.end()) return "";
    const std::string option = found->substr(0, found->find('='));
    std::vector<std::string> names;
    for (const CLI::Option* each : at.get_options()) {
        for (const std::string& known : each->get_lnames()) names.push_back("--" + known);
    }
    std::string command = name;
    for (const CLI::App* each = &app; each != &at;) {
        each = each->get_subcommands().front();
        command += " " + each->get_name();
    }
    const std::string better = meant(option, names);
    return heed::text::printable(option) + " is not an option of `" + command + "`" +
           (better.empty() ? "" : "; did you mean " + better + "?");
}

/// `NAME --generate man|completion FOLDER DATE`, called by the build and hidden from --help: writes the manual pages or
/// the completions. Returns whether it was requested.
inline bool generated(CLI::App& app, const std::string& name, int argc, char** argv, const manual_sections& more,
                      const std::vector<std::string>& related)
{
    if (argc != 5 || std::string_view(argv[1]) != "--generate") return false;
    const std::string what = argv[2];
    if (what == "man") {
        write_manual(app, name, argv[3], more, argv[4], related);
    } else if (what == "completion") {
        write_completions(app, name, argv[3]);
    } else {
        throw heed::error("--generate " + what + ": choose man or completion");
    }
    return true;
}

/// Reads the command line, runs `work`, and returns the exit status; every exception becomes a message. The status is
/// that of `work`, misuse_status for an invalid command line, and 1 for other failures. `needs_less`: advice if memory
/// runs out. `prepare`: modifies the arguments, in reverse order, before they are parsed. `more` and `related`: for the
/// manual pages.
inline int run(
    CLI::App& app, const std::string& name, int argc, char** argv, const std::function<int()>& work,
    const std::string& needs_less = "",
    const std::function<void(std::vector<std::string>&)>& prepare = [](std::vector<std::string>&) {},
    const manual_sections& more = {}, const std::vector<std::string>& related = {})
{
    one_value_each(app);
    refuse_empty_paths(app);
    app.name(argv[0]);
    std::ios::sync_with_stdio(false);
    std::signal(SIGXFSZ, SIG_IGN);  // exceeding a file size limit is reported like a full disk
    std::signal(SIGPIPE, SIG_IGN);  // likewise a closed pipe; without a reader of its messages, the program continues
    const auto say = [&](const std::string& text) { std::fputs((name + ": " + text + '\n').c_str(), stderr); };
    try {
        if (generated(app, name, argc, argv, more, related)) return 0;
        int status = 0;
        try {
            std::vector<std::string> given = arguments(argc, argv);
            prepare(given);
            app.parse(std::move(given));
            status = work();
        } catch (const CLI::ParseError& reason) {
            const bool lacks = dynamic_cast<const CLI::RequiredError*>(&reason) != nullptr;
            const bool is_about_others = lacks || dynamic_cast<const CLI::RequiresError*>(&reason) != nullptr ||
                                         dynamic_cast<const CLI::ExtrasError*>(&reason) != nullptr;
            const CLI::App& at = innermost(app);
            std::string problem;
            if (lacks && at.get_require_subcommand_min() != 0)
                problem = missing_subcommand(at);
            else if (is_about_others)
                problem = unknown_option(app, name);
            if (problem.empty())
                status = app.exit(reason);  // including --help and --version
            else
                std::cerr << name + ": " + problem + "\nRun with --help for more information.\n" << std::flush;
            if (reason.get_exit_code() != 0) status = misuse_status;
        }
        flush_output();
        return status;
    } catch (const misuse& problem) {
        say(heed::text::printable(problem.what()));
        return misuse_status;
    } catch (const std::bad_alloc&) {
        say("out of memory" + needs_less);
    } catch (const std::exception& problem) {
        say(heed::text::printable(problem.what()));
    }
    return 1;
}

}  // namespace program
