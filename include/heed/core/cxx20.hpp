// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Every header of heed reaches this one before any line that another compiler would stumble over. Compilers read on
// after an #error; a file that does not exist stops them.
#if defined(_MSC_VER) || !defined(__GNUC__)
#error "heed needs g++ 12, clang++ 14 or later: its kernels are written in their vector types, which MSVC has not"
#include <heed/needs/g++ or clang++>
#endif
#if __cplusplus <= 201703L || !defined(__cpp_concepts)
#error "heed needs C++20: compile with -std=c++20, or in CMake: target_compile_features(<target> PRIVATE cxx_std_20)"
#include <heed/needs/C++20>
#endif
#ifndef __cpp_exceptions
#error "heed needs exceptions: it throws heed::shape_error where a shape does not fit; compile without -fno-exceptions"
#include <heed/needs/exceptions>
#endif
