// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// Maps options to systems. A system here is any type with a `name` and its `uses`.
namespace heed::translator {

/// An option that a system supports.
struct option_support {
    std::string option;                // such as "attention"
    std::vector<std::string> choices;  // the values supported by this system; empty: any
    std::string preset;                // its default in this system; empty: that of `options`
};

/// The support of a system for this option; null: none.
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

/// The values of an option that any system supports, without duplicates.
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

/// The options that apply only to systems that support them.
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

/// The error message for giving this option to this system; empty if the system supports it.
std::optional<std::string> misplaced(const std::string& option, const auto& chosen, const auto& all)
{
    if (support_of(option, chosen) != nullptr) return std::nullopt;
    std::vector<std::string> others;
    for (const auto& kind : all) {
        if (support_of(option, kind) != nullptr) others.push_back(kind.name);
    }
    return "--" + option + ": --system " + chosen.name + " does not support it; omit it, or use --system " +
           joined(others);
}

/// The error message for an unsupported value of an option of this system; empty if all values are supported. `how`:
/// the options.
std::optional<std::string> unsuitable(const auto& how, const auto& chosen)
{
    std::optional<std::string> problem;
    how.each_text([&](const std::string& name, const std::string& value) {
        const option_support* const its = support_of(name, chosen);
        if (problem || its == nullptr || its->choices.empty()) return;
        if (std::find(its->choices.begin(), its->choices.end(), value) == its->choices.end())
            problem = "--" + name + " " + value + ": --system " + chosen.name + " supports " + joined(its->choices);
    });
    return problem;
}

}  // namespace heed::translator
