// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// Which option belongs to which system. A system here is anything with a `name` and its `uses`.
namespace heed::translator {

/// An option that a system has a use for.
struct option_support {
    std::string option;                // such as "attention"
    std::vector<std::string> choices;  // the values that go with this system; empty: any
    std::string preset;                // its default in this system; empty: that of `options`
};

/// What a system does with this option; null: nothing.
const option_support* support_of(const std::string& option, const auto& system)
{
    const auto found = std::find_if(system.option_support_list.begin(), system.option_support_list.end(),
                                    [&](const option_support& each) { return each.option == option; });
    return found == system.option_support_list.end() ? nullptr : &*found;
}

/// "a, b or c"
inline std::string joined(const std::vector<std::string>& names, const std::string& last = " or ")
{
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 < names.size() ? ", " : last) + names[i];
    return text;
}

/// The values of an option that some system takes, each once.
std::vector<std::string> choices_of(const std::string& option, const auto& all)
{
    std::vector<std::string> names;
    for (const auto& kind : all) {
        if (const option_support* const its = support_of(option, kind)) {
            for (const std::string& each : its->choices) {
                if (std::find(names.begin(), names.end(), each) == names.end()) names.push_back(each);
            }
        }
    }
    return names;
}

/// The options that only concern systems which have a use for them.
std::vector<std::string> options_of_systems(const auto& all)
{
    std::vector<std::string> names;
    for (const auto& kind : all) {
        for (const option_support& each : kind.option_support_list) {
            if (std::find(names.begin(), names.end(), each.option) == names.end()) names.push_back(each.option);
        }
    }
    return names;
}

/// Says what is wrong with giving this option to this system; nothing if it has a use for it.
std::optional<std::string> misplaced(const std::string& option, const auto& chosen, const auto& all)
{
    if (support_of(option, chosen) != nullptr) return std::nullopt;
    std::vector<std::string> others;
    for (const auto& kind : all) {
        if (support_of(option, kind) != nullptr) others.push_back(kind.name);
    }
    return "--" + option + ": --system " + chosen.name + " has no use for it; leave it out, or give --system " +
           joined(others);
}

/// Says what is wrong with the value of an option of which this system takes only some values; nothing if all is well.
/// `how`: the options.
std::optional<std::string> unsuitable(const auto& how, const auto& chosen)
{
    std::optional<std::string> problem;
    how.each_text([&](const std::string& name, const std::string& value) {
        const option_support* const its = support_of(name, chosen);
        if (problem || its == nullptr || its->choices.empty()) return;
        if (std::find(its->choices.begin(), its->choices.end(), value) == its->choices.end())
            problem = "--" + name + " " + value + ": --system " + chosen.name + " takes " + joined(its->choices);
    });
    return problem;
}

}  // namespace heed::translator
