// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <string>

#include <heed/io/atomic_file.hpp>
#include <heed/view/shades.hpp>
#include <heed/view/svg.hpp>

namespace course {

/// The pictures of a step: printed and, if the program is called with `--out DIR`, written to DIR as SVG.
struct drawing {
    std::string directory;

    drawing(int argc, char** argv) : directory(argc > 2 && std::string(argv[argc - 2]) == "--out" ? argv[argc - 1] : "")
    {}

    void operator()(const std::string& name, const heed::view::alignment& picture) const
    {
        std::printf("\n%s\n", heed::view::shades(picture).c_str());
        if (!directory.empty()) heed::io::write_file(directory + "/" + name + ".svg", heed::view::svg(picture));
    }
};

}  // namespace course
