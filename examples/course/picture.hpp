// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <heed/io/atomic_file.hpp>
#include <heed_kit/view/shades.hpp>
#include <heed_kit/view/svg.hpp>

/// Pictures of the course: in the terminal and, with `--out DIR`, as SVG files for a browser.
namespace course {

inline std::string directory;  // of the SVG files; empty: none are written

[[noreturn]] inline void refuse(const std::string& why)
{
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(2);
}

/// Reads `--out DIR` and returns the other arguments. `others` describes them in the usage line; if it is empty, as in
/// all steps but the last, other arguments are errors.
inline std::vector<std::string> pictures_to(int argc, char** argv, const std::string& others = {})
{
    std::vector<std::string> given(argv + 1, argv + argc);
    const auto out = std::find(given.begin(), given.end(), "--out");
    if (given.end() - out > 1) {
        directory = *(out + 1);
        given.erase(out, out + 2);
        if (!std::filesystem::is_directory(directory)) refuse("--out " + directory + ": no such directory");
    }
    const bool option = std::any_of(given.begin(), given.end(), [](const auto& one) { return one.starts_with("-"); });
    if (option || (others.empty() && !given.empty()))
        refuse(std::string("usage: ") + argv[0] + (others.empty() ? "" : " " + others) + " [--out DIR]");
    return given;
}

/// Writes DIR/name.svg if there was an `--out DIR`.
inline void write_picture(const std::string& name, const std::string& svg)
{
    if (directory.empty()) return;
    const std::string file = directory + "/" + name + ".svg";
    try {
        heed::io::write_file(file, svg);
    } catch (const heed::error& problem) {
        refuse(problem.what());
    }
}

/// Draws weights: a row for each of `rows` and a column for each of `columns`. `links`, (column, row), are marked.
inline void picture(const std::string& name, const std::vector<float>& weights, const std::vector<std::string>& columns,
                    const std::vector<std::string>& rows, const std::vector<std::pair<int, int>>& links = {},
                    const std::string& title = {})
{
    const heed::view::alignment drawn{weights, columns, rows, links, title};
    std::printf("\n%s\n", heed::view::shades(drawn).c_str());
    write_picture(name, heed::view::svg(drawn));
}

}  // namespace course
