// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Every header of heed reaches this one before any line that an older compiler would stumble over. Compilers read on
// after an #error; a file that does not exist stops them.
#if __cplusplus <= 201703L || !defined(__cpp_concepts)
#error "heed needs C++20: compile with -std=c++20, or in CMake: target_compile_features(<target> PRIVATE cxx_std_20)"
#include <heed/needs/C++20>
#endif
