// SPDX-License-Identifier: BSD-3-Clause
//
// Linked into examples and benchmarks: if standard output cannot be written, the program ends with an error and
// status 1. A program alone would ignore this, since its last output is written after main.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>  // initialized first, hence flushed after the check

namespace {

struct checked_output {
    checked_output() = default;
    checked_output(const checked_output&) = delete;
    checked_output& operator=(const checked_output&) = delete;
    ~checked_output()
    {
        if (std::fflush(stdout) != 0)
            std::fprintf(stderr, "cannot write to standard output: %s\n", std::strerror(errno));
        else if (std::ferror(stdout) != 0)
            std::fputs("cannot write to standard output: a part is lost\n", stderr);
        else
            return;
        std::_Exit(1);
    }
};
const checked_output at_exit;

}  // namespace
