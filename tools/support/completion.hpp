// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/io/atomic_file.hpp>

#include "declared.hpp"

/// Completion of a program's command line in bash, zsh and fish, from what the program has declared: commands, options,
/// the values of an option that takes only some, files for those of type FILE.
namespace program {

namespace detail {

inline std::string joined(const std::vector<std::string>& words, const std::string& between = " ")
{
    std::string all;
    for (const std::string& each : words) all += (all.empty() ? "" : between) + each;
    return all;
}

/// visit(words, command) for each command: {} is the program, {"bpe", "learn"} one of its commands.
inline void each_command(CLI::App& app, const std::function<void(const std::vector<std::string>&, CLI::App&)>& visit,
                         const std::vector<std::string>& words = {})
{
    visit(words, app);
    for (CLI::App* each : commands_of(app)) {
        std::vector<std::string> further = words;
        further.push_back(each->get_name());
        each_command(*each, visit, further);
    }
}

inline std::vector<std::string> names_of(CLI::App& command)
{
    std::vector<std::string> names;
    for (const CLI::App* each : commands_of(command)) names.push_back(each->get_name());
    return names;
}

inline bool takes_files(CLI::App& command)
{
    const std::vector<declared> all = options_of(command);
    return std::any_of(all.begin(), all.end(), [](const declared& one) { return one.argument; });
}

}  // namespace detail

/// For bash, without the package bash-completion.
inline std::string bash_completion(CLI::App& app, const std::string& program)
{
    std::string commands, values, words;
    detail::each_command(app, [&](const std::vector<std::string>& path, CLI::App& command) {
        const std::string at = detail::joined(path, " ");
        std::vector<std::string> all = detail::names_of(command), files, anything;
        if (!all.empty()) commands += fmt::format("        '{}') known='{}' ;;\n", at, detail::joined(all));
        for (const declared& one : options_of(command)) {
            if (one.argument) continue;
            all.push_back(one.name);
            const std::string here = fmt::format("'{} {}'", at, one.name);
            if (one.type.empty()) continue;
            if (!one.choices.empty()) {
                values += fmt::format("        {}) words='{}' ;;\n", here, detail::joined(one.choices));
            } else if (one.takes_file()) {
                files.push_back(here);
            } else {
                anything.push_back(here);
            }
        }
        if (!files.empty()) values += fmt::format("        {}) files=1 ;;\n", detail::joined(files, " | "));
        if (!anything.empty()) values += fmt::format("        {}) return ;;\n", detail::joined(anything, " | "));
        words += fmt::format("        '{}') words='{}'{} ;;\n", at, detail::joined(all),
                             detail::takes_files(command) ? " files=1" : "");
    });
    return fmt::format(R"(# bash completion for {0}, made by the program itself from what it has declared.
_heed_{0}()
{{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local command='' known='' words='' files='' word i
    COMPREPLY=()

    # bash takes --option=value apart at its =.
    if [[ $current == '=' ]]; then
        current=''
    elif [[ $previous == '=' ]] && ((COMP_CWORD > 1)); then
        previous=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi

    # The command so far, such as "bpe learn".
    for ((i = 1; i < COMP_CWORD; ++i)); do
        known=''
        case $command in
{1}        esac
        for word in $known; do
            if [[ ${{COMP_WORDS[i]}} == "$word" ]]; then
                command+=${{command:+ }}$word
                break
            fi
        done
    done

    if [[ $previous == --* ]]; then
        case "$command $previous" in
{2}        esac
        # The value of an option may be left out: the next word is an option, then.
        if [[ $files && $current == -* ]]; then files=''; fi
    fi
    if [[ -z $words && -z $files ]]; then
        case $command in
{3}        esac
        if [[ $files && $current == -* ]]; then files=''; elif [[ $files ]]; then words=''; fi
    fi
    if [[ $files ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    fi
}}
complete -F _heed_{0} {0}
)",
                       program, commands, values, words);
}

/// For zsh: a file _translate in a directory of $fpath.
inline std::string zsh_completion(CLI::App& app, const std::string& program)
{
    const auto quoted = [](const std::string& text) {
        std::string result;
        for (const char each : text) result += each == '\'' ? std::string("'\\''") : std::string(1, each);
        return result;
    };
    const auto described = [&](const std::string& text) {  // within [...], where : and ] mean something
        std::string result;
        for (const char each : text) {
            if (each == '[' || each == ']' || each == ':' || each == '\\') result += '\\';
            result += each;
        }
        return quoted(result);
    };
    std::string functions;
    detail::each_command(app, [&](const std::vector<std::string>& path, CLI::App& command) {
        const std::string function = detail::joined(path, "_");
        functions += fmt::format("_heed_{}{}{}()\n{{\n    ", program, path.empty() ? "" : "_", function);
        const bool has_commands = !commands_of(command).empty();
        functions += has_commands
                         ? "local curcontext=$curcontext state line\n    typeset -A opt_args\n    _arguments -C"
                         : "_arguments";
        for (const declared& one : options_of(command)) {
            std::string action;
            if (!one.type.empty())
                action = fmt::format("{}{}:{}", one.value_may_lack ? "::" : ":", one.type,
                                     !one.choices.empty() ? "(" + detail::joined(one.choices) + ")"
                                     : one.takes_file()   ? "_files"
                                                          : " ");
            if (one.argument) {
                functions += fmt::format(" \\\n        '{}:{}:_files'", one.repeated ? "*" : "", one.name);
            } else {
                functions += fmt::format(" \\\n        '{}{}{}[{}]{}'", one.repeated ? "*" : "", one.name,
                                         one.type.empty() ? "" : "=", described(summary(one)), action);
            }
        }
        if (has_commands) {
            functions += " \\\n        '1:command:->command' \\\n        '*::argument:->argument'\n";
            functions += "    case $state in\n        command)\n            local -a commands=(\n";
            for (const CLI::App* each : commands_of(command))
                functions += fmt::format("                '{}:{}'\n", each->get_name(),
                                         described(first_sentence(each->get_description())));
            functions += "            )\n            _describe command commands\n            ;;\n        argument)\n";
            functions += "            case $line[1] in\n";
            for (const CLI::App* each : commands_of(command))
                functions += fmt::format("                {0}) _heed_{1}{2}{3}_{0} ;;\n", each->get_name(), program,
                                         path.empty() ? "" : "_", function);
            functions += "            esac\n            ;;\n    esac\n";
        } else {
            functions += '\n';
        }
        functions += "}\n\n";
    });
    return fmt::format("#compdef {0}\n# Made by the program itself from what it has declared.\n\n{1}_heed_{0} \"$@\"\n",
                       program, functions);
}

/// For fish.
inline std::string fish_completion(CLI::App& app, const std::string& program)
{
    const auto quoted = [](const std::string& text) {
        std::string result = "'";
        for (const char each : text)
            result += each == '\'' || each == '\\' ? std::string("\\") + each : std::string(1, each);
        return result + "'";
    };
    std::string lines =
        fmt::format("# Made by the program itself from what it has declared.\ncomplete -c {} -f\n", program);
    detail::each_command(app, [&](const std::vector<std::string>& path, CLI::App& command) {
        std::string where;
        for (const std::string& each : path)
            where += (where.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + each);
        const std::vector<std::string> names = detail::names_of(command);
        std::string none_yet = where;
        if (!names.empty())
            none_yet +=
                (where.empty() ? "not " : "; and not ") + ("__fish_seen_subcommand_from " + detail::joined(names));
        const auto line = [&](const std::string& condition, const std::string& rest) {
            lines += "complete -c " + program + (condition.empty() ? "" : " -n " + quoted(condition)) + rest + '\n';
        };
        for (const CLI::App* each : commands_of(command))
            line(none_yet, " -a " + each->get_name() + " -d " + quoted(first_sentence(each->get_description())));
        for (const declared& one : options_of(command)) {
            if (one.argument) {
                line(none_yet, " -F");
                continue;
            }
            std::string rest = " -l " + one.name.substr(2);
            if (!one.short_name.empty()) rest += " -s " + one.short_name.substr(1);
            if (!one.choices.empty()) {
                rest += " -x -a " + quoted(detail::joined(one.choices));
            } else if (one.takes_file()) {
                rest += " -r -F";
            } else if (!one.type.empty()) {
                rest += " -x";
            }
            line(none_yet, rest + " -d " + quoted(summary(one)));
        }
    });
    return lines;
}

/// Writes all three to a folder: NAME for bash, _NAME for zsh, NAME.fish.
inline void write_completions(CLI::App& app, const std::string& program, const std::filesystem::path& folder)
{
    heed::io::write_file(folder / "bash" / program, bash_completion(app, program));
    heed::io::write_file(folder / "zsh" / ("_" + program), zsh_completion(app, program));
    heed::io::write_file(folder / "fish" / (program + ".fish"), fish_completion(app, program));
}

}  // namespace program
