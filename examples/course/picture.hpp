// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <heed/view/shades.hpp>
#include <heed/view/svg.hpp>

/// Pictures of the course: in the terminal and, with `--out DIR`, as SVG files for a browser.
namespace course {

inline std::string directory;  // of the SVG files; none where it is empty

/// Reads `--out DIR`, the only option that steps have.
inline void pictures_to(int count, char** arguments)
{
    if (count == 1) return;
    if (count != 3 || std::string_view(arguments[1]) != "--out") {
        std::fprintf(stderr, "usage: %s [--out DIR]\n", arguments[0]);
        std::exit(2);
    }
    directory = arguments[2];
}

/// Writes DIR/name.svg, if there is a DIR.
inline void write_picture(const std::string& name, const std::string& svg)
{
    if (directory.empty()) return;
    const std::string file = directory + "/" + name + ".svg";
    if (!(std::ofstream(file) << svg).flush()) {
        std::fprintf(stderr, "%s cannot be written\n", file.c_str());
        std::exit(1);
    }
}

/// Weights, a row for each of `rows` and a column for each of `columns`.
inline void picture(const std::string& name, const std::vector<float>& weights, const std::vector<std::string>& columns,
                    const std::vector<std::string>& rows)
{
    const heed::view::alignment drawn{weights, columns, rows};
    std::printf("\n%s\n", heed::view::shades(drawn).c_str());
    write_picture(name, heed::view::svg(drawn));
}

}  // namespace course
