// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

// Kernels that heed::compiled has.
//
// A header lists its kernels, each with its result, its name, its parameters and its arguments, for numbers T:
//
//     #define HEED_KERNELS_OF_ROWS(X, T) X(T, add, void, add, (std::size_t n, T* y, const T* x), (n, y, x))
//     HEED_COMPILED_KERNELS(HEED_KERNELS_OF_ROWS)
//
// The first name is an identifier, the second one may have template arguments. In a file that uses heed::compiled the
// second line declares them for float and double, so that the file compiles none of them. src/compiled defines each
// name as a call of the version for the processor that the program runs on.
#if defined(HEED_CALLS_COMPILED) && !defined(HEED_DEFINES_COMPILED)
#define HEED_KERNEL_DECLARED(T, id, result, name, parameters, arguments) extern template result name parameters;
#define HEED_COMPILED_KERNELS(list) list(HEED_KERNEL_DECLARED, float) list(HEED_KERNEL_DECLARED, double)
#else
#define HEED_COMPILED_KERNELS(list)
#endif
