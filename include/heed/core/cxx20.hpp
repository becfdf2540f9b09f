// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The single header (scripts/single_header.sh) holds these headers once more.
#ifdef HEED_SINGLE_HEADER
#error "heed: this header comes after the single header, which holds it, too: include one or the other"
#include <heed/needs/one of the two>
#endif
#define HEED_SEPARATE_HEADERS

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

// clang++ 15 to 18 write to a wrong place where a struct whose first member is empty and has no address of its own is
// initialised by braces inside of another one (llvm-project, issue 59831): there, empty members take up room.
#if defined(__clang__) && __clang_major__ >= 15 && __clang_major__ <= 18
#define HEED_NO_UNIQUE_ADDRESS
#else
#define HEED_NO_UNIQUE_ADDRESS [[no_unique_address]]
#endif
