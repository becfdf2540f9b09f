// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "options.hpp"
#include "system.hpp"

/// The systems of `translate train --system`. Another one is a row in systems.cpp and a file in systems/, which alone
/// compiles its models.
namespace translation {

/// An option that a system has a use for.
struct use {
    std::string option;                // such as "attention"
    std::vector<std::string> choices;  // the values that go with this system; empty: any
    std::string preset;                // its default in this system; empty: that of `options`
};

/// A matrix that a model must have if its options are true: the sizes in a file are checked before a model of these
/// sizes is made.
struct claim {
    std::string tensor;
    std::size_t rows, columns;
};

struct system_kind {
    std::string name, description;
    std::vector<use> uses;
    std::unique_ptr<system> (*make)(const options& how, std::size_t source_words, std::size_t target_words);
    /// Each product of two sizes that the model allocates must occur.
    std::vector<claim> (*claims)(const options& how, std::size_t source_words, std::size_t target_words);

    const use* find(const std::string& option) const
    {
        const auto found =
            std::find_if(uses.begin(), uses.end(), [&](const use& each) { return each.option == option; });
        return found == uses.end() ? nullptr : &*found;
    }
};

/// All systems, in the order of --help.
const std::vector<system_kind>& systems();

/// The system of this name. Throws heed::error if there is none.
const system_kind& kind_of(const std::string& name);

/// A new system, as the options say.
std::unique_ptr<system> make_system(const options& how, std::size_t source_words, std::size_t target_words);

/// "a, b or c"
inline std::string joined(const std::vector<std::string>& names, const std::string& last = " or ")
{
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 < names.size() ? ", " : last) + names[i];
    return text;
}

/// The values of an option that some system takes, each once.
inline std::vector<std::string> choices_of(const std::string& option, const std::vector<system_kind>& all)
{
    std::vector<std::string> names;
    for (const system_kind& kind : all) {
        if (const use* const its = kind.find(option)) {
            for (const std::string& each : its->choices) {
                if (std::find(names.begin(), names.end(), each) == names.end()) names.push_back(each);
            }
        }
    }
    return names;
}

/// The options that some systems have a use for, but not every one must.
inline std::vector<std::string> options_of_systems(const std::vector<system_kind>& all)
{
    std::vector<std::string> names;
    for (const system_kind& kind : all) {
        for (const use& each : kind.uses) {
            if (std::find(names.begin(), names.end(), each.option) == names.end()) names.push_back(each.option);
        }
    }
    return names;
}

/// Says what is wrong with giving this option to this system; nothing if it has a use for it.
inline std::optional<std::string> misplaced(const std::string& option, const system_kind& chosen,
                                            const std::vector<system_kind>& all)
{
    if (chosen.find(option) != nullptr) return std::nullopt;
    std::vector<std::string> others;
    for (const system_kind& kind : all) {
        if (kind.find(option) != nullptr) others.push_back(kind.name);
    }
    return fmt::format("--{}: --system {} has no use for it; leave it out, or give --system {}", option, chosen.name,
                       joined(others));
}

/// Says what is wrong with the value of an option that this system takes only some values of; nothing if all is well.
inline std::optional<std::string> unsuitable(const options& how, const system_kind& chosen)
{
    std::optional<std::string> problem;
    how.each_text([&](const std::string& name, const std::string& value) {
        const use* const its = chosen.find(name);
        if (problem || its == nullptr || its->choices.empty()) return;
        if (std::find(its->choices.begin(), its->choices.end(), value) == its->choices.end())
            problem = fmt::format("--{} {}: --system {} takes {}", name, value, chosen.name, joined(its->choices));
    });
    return problem;
}

}  // namespace translation
