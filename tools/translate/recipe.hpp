// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_translator/option_support.hpp>

#include "../support/program.hpp"
#include "train_command.hpp"

namespace translation {

/// Maximum length of a line of a recipe, in bytes.
inline constexpr std::size_t longest_recipe_line = 65536;

/// The folder of the built-in recipes: the folder where `cmake --install` puts them, relative to the
/// program, or the one next to the program in the build tree. `called`: the program's name on the command line. Empty
/// if there is none.
inline std::filesystem::path recipe_folder(const std::filesystem::path& called)
{
    namespace fs = std::filesystem;
    std::error_code unknown;
    fs::path program = fs::read_symlink("/proc/self/exe", unknown);
    if (unknown) program = fs::weakly_canonical(fs::absolute(called, unknown), unknown);
    for (const char* const beside : {HEED_RECIPES, "recipes"}) {
        const fs::path folder = (program.parent_path() / beside).lexically_normal();
        if (fs::is_directory(folder, unknown)) return folder;
    }
    return {};
}

/// The file named by --recipe: the given path or, if it does not exist and has no folder, NAME.ini in this folder.
/// Throws heed::error listing the available names if there is no such recipe.
inline std::filesystem::path find_recipe(const std::filesystem::path& given, const std::filesystem::path& folder)
{
    namespace fs = std::filesystem;
    std::error_code unknown;
    if (fs::exists(given, unknown) || given.has_parent_path() || folder.empty()) return given;
    std::vector<std::string> names;
    for (const auto& each : fs::directory_iterator(folder, unknown)) {
        if (each.path().extension() != ".ini") continue;
        names.push_back(each.path().stem().string());
        if (given == names.back() || given == each.path().filename()) return each.path();
    }
    if (names.empty()) return given;
    std::sort(names.begin(), names.end());
    throw heed::error(fmt::format("{}: no such file, and not a recipe of this program; choose from {}", given.string(),
                                  joined(names)));
}

/// The options of a recipe as arguments "--name=value". Throws heed::error, with file and line, for unknown options of
/// `translate train` and invalid values.
inline std::vector<std::string> read_recipe(const std::filesystem::path& path)
{
    std::ifstream file = heed::text::open_text(path);
    std::vector<std::string> found;
    std::map<std::string, std::size_t> lines;  // of each option
    std::size_t number = 0;
    const auto next = [&] { return fmt::format("{}:{}", path.string(), number + 1); };
    for (std::string line; heed::text::read_line(file, line, next, longest_recipe_line);) {
        ++number;
        const auto refuse = [&](const std::string& what) {
            throw heed::error(fmt::format("{}:{}: {}", path.string(), number, what));
        };
        CLI::detail::trim(line);
        if (line.empty() || line.front() == '#' || line.front() == ';') continue;
        // Reads line by line, since CLI11's reader does not report lines.
        std::istringstream one(line);
        const std::vector<CLI::ConfigItem> items = CLI::ConfigBase().from_config(one);
        if (items.size() != 1 || !items.front().parents.empty() || items.front().inputs.size() != 1)
            refuse("\"" + line + "\" is not an option of `translate train` and its value, such as hidden = 512");
        const std::string &name = items.front().name, &value = items.front().inputs.front();
        train_command scratch;
        CLI::App app;
        app.set_help_flag();
        scratch.declare(app);
        const CLI::Option* const option = app.get_option_no_throw("--" + name);
        if (option == nullptr || name == "recipe") refuse("`translate train` has no option --" + name);
        if (value.empty()) refuse("--" + name + " has no value");
        if (const auto before = lines.emplace(name, number); !before.second)
            refuse(fmt::format("--{} is already set in line {}", name, before.first->second));
        const std::string argument = "--" + name + "=" + value;
        try {
            app.parse(std::vector<std::string>{argument});
        } catch (const CLI::RequiredError&) {  // of another option: values were checked before
        } catch (const CLI::RequiresError&) {
        } catch (const CLI::ParseError& problem) {
            refuse(problem.what());
        }
        found.push_back(argument);
    }
    return found;
}

/// Inserts the options of `translate train --recipe` before the others, which take precedence. `arguments`: in reverse
/// order. `called`: the program's name on the command line.
inline void add_recipe(std::vector<std::string>& arguments, const std::filesystem::path& called)
{
    const auto command = std::find(arguments.rbegin(), arguments.rend(), "train");
    std::string path;
    for (auto each = command; each != arguments.rend(); ++each) {
        if (each->starts_with("--recipe=")) path = each->substr(9);
        if (*each == "--recipe" && each + 1 != arguments.rend()) path = *(each + 1);
    }
    if (path.empty() || path == program::empty_value) return;
    std::vector<std::string> held = read_recipe(find_recipe(path, recipe_folder(called)));
    std::reverse(held.begin(), held.end());
    arguments.insert(command.base() - 1, held.begin(), held.end());
}

}  // namespace translation
