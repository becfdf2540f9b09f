// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

/// The declared commands and options of a program, for its manual pages and for completion.
namespace program {

/// An option or argument of a command.
struct declared {
    std::string name;                  // "--system"; for an argument, FILE
    std::string short_name;            // "-h", or empty
    std::string type;                  // type of the value: NAME, FILE, N; empty: a flag
    std::string preset;                // default
    std::string help, group;           // help text
    std::vector<std::string> choices;  // allowed values; empty: any
    std::vector<std::string> needs, excludes;
    bool argument = false, required = false, repeated = false, value_may_lack = false;

    bool takes_file() const { return type.find("FILE") != type.npos || type.find("LOG") != type.npos; }
};

/// The values that an option is restricted to. CLI11 does not expose them, but its error for an invalid value lists
/// them: "x not in {a,b}". Validators with a different message have the values in their name: see one_of().
inline std::vector<std::string> choices_of(CLI::Option& option)
{
    const auto split = [](const std::string& text) {
        std::vector<std::string> all;
        std::istringstream stream(text);
        for (std::string each; std::getline(stream, each, ',');) all.push_back(each);
        return all;
    };
    constexpr std::string_view begin = " not in {";
    for (int i = 0;; ++i) {
        CLI::Validator* validator = nullptr;
        try {
            validator = option.get_validator(i);
        } catch (const CLI::OptionNotFound&) {
            return {};
        }
        if (validator->get_name().starts_with("one of:")) return split(validator->get_name().substr(7));
        std::string nothing_like_it = "\x01";
        const std::string refusal = (*validator)(nothing_like_it);
        const std::size_t at = refusal.find(begin);
        if (at != refusal.npos && refusal.ends_with('}'))
            return split(refusal.substr(at + begin.size(), refusal.size() - at - begin.size() - 1));
    }
}

/// Names a validator by its allowed values, for choices_of().
inline CLI::Validator one_of(const std::vector<std::string>& values, CLI::Validator validator)
{
    std::string name = "one of:";
    for (const std::string& each : values) name += (name.back() == ':' ? "" : ",") + each;
    return validator.name(name);
}

/// The options and arguments of a command, in the order of its declarations.
inline std::vector<declared> options_of(CLI::App& command)
{
    const auto name_of = [](const CLI::Option& option) {
        if (option.get_positional()) return option.get_single_name();
        return option.get_lnames().empty() ? "-" + option.get_snames().front() : "--" + option.get_lnames().front();
    };
    std::vector<declared> all;
    for (CLI::Option* const each :
         command.get_options([](CLI::Option* option) { return !option->get_group().empty(); })) {
        declared& one = all.emplace_back();
        one.name = name_of(*each);
        if (!each->get_snames().empty() && !each->get_lnames().empty())
            one.short_name = "-" + each->get_snames().front();
        one.type = each->get_type_size() == 0 ? "" : each->get_type_name();
        one.value_may_lack = one.type.starts_with('[') || each->get_expected_min() == 0;
        if (one.type.starts_with('[')) one.type = one.type.substr(1, one.type.size() - 2);
        one.preset = each->get_default_str();
        one.help = each->get_description();
        one.group = each->get_group();
        if (!one.type.empty()) one.choices = choices_of(*each);
        for (const CLI::Option* other : each->get_needs()) one.needs.push_back(name_of(*other));
        for (const CLI::Option* other : each->get_excludes()) one.excludes.push_back(name_of(*other));
        one.argument = each->get_positional();
        one.required = each->get_required();
        // one_value_each() makes a repeated option take one value each time.
        one.repeated = each->get_expected_max() > 1;
    }
    return all;
}

/// The subcommands, in order of declaration.
inline std::vector<CLI::App*> commands_of(CLI::App& app)
{
    return app.get_subcommands([](CLI::App* each) { return !each->get_group().empty(); });
}

/// The first sentence of a help text, on one line.
inline std::string first_sentence(std::string text)
{
    for (char& each : text) {
        if (each == '\n') each = ' ';
    }
    for (std::size_t at = text.find(". "); at != text.npos; at = text.find(". ", at + 1)) {
        // "et al. 2015", "mteval-v13a. and": a sentence ends before a capital letter
        const bool abbreviation = at >= 2 && text.compare(at - 2, 2, "al") == 0;
        if (!abbreviation && at + 2 < text.size() && text[at + 2] >= 'A' && text[at + 2] <= 'Z')
            return text.substr(0, at);
    }
    while (text.ends_with('.')) text.pop_back();
    return text;
}

/// The purpose of an option, on one line; its name if the help is a list of its values.
inline std::string summary(const declared& one)
{
    const bool is_list = one.help.find("  ") != one.help.npos;
    return is_list ? one.name.substr(one.name.find_first_not_of('-')) : first_sentence(one.help);
}

}  // namespace program
