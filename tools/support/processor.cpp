// SPDX-License-Identifier: BSD-3-Clause
//
// Compiled for the baseline processor, independent of the program's target: see processor.hpp.

#include "processor.hpp"

#include <cerrno>
#include <cstdio>

#include <unistd.h>

namespace {

/// Runs before main() and before any variable of the program is initialized.
__attribute__((constructor(101))) void require_processor()
{
    const char* missing = "";
    const std::size_t length = program::missing_feature(heed_built_for, missing);
    if (length == 0) return;
    std::fprintf(
        stderr,
        "%s: was built for a processor with %.*s, which this processor lacks. Build it with cmake -DHEED_NATIVE=OFF "
        "to run on every x86-64; adding -DCMAKE_CXX_FLAGS=-march=x86-64-v3 is faster and runs on nearly all\n",
        program_invocation_short_name, static_cast<int>(length), missing);
    ::_exit(1);
}

}  // namespace
