// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

// The kernels in heed::compiled.
//
// A header lists its kernels for elements of type T, each with its result type, name, parameters and arguments:
//
//     #define HEED_KERNELS_OF_ROWS(X, T) X(T, add, void, add, (std::size_t n, T* y, const T* x), (n, y, x))
//     HEED_COMPILED_KERNELS(HEED_KERNELS_OF_ROWS)
//
// The first name is an identifier; the second one may have template arguments. In a file that uses heed::compiled, the
// second line declares each kernel for float and double as `extern template`, so the compiler does not instantiate it.
// src/compiled defines each kernel as a call of the version for the current processor.
#if defined(HEED_DEFINES_COMPILED)
#define HEED_KERNEL_DECLARED(T, id, result, name, parameters, arguments)                                               \
    template <>                                                                                                        \
    result name parameters;
#elif defined(HEED_CALLS_COMPILED)
#define HEED_KERNEL_DECLARED(T, id, result, name, parameters, arguments) extern template result name parameters;
#endif
#if defined(HEED_KERNEL_DECLARED)
#define HEED_COMPILED_KERNELS(list) list(HEED_KERNEL_DECLARED, float) list(HEED_KERNEL_DECLARED, double)
#define HEED_COMPILED_KERNELS_OF_FLOATS(list) list(HEED_KERNEL_DECLARED, float)
#else
#define HEED_COMPILED_KERNELS(list)
#define HEED_COMPILED_KERNELS_OF_FLOATS(list)
#endif

// A function that is no template, in heed::compiled: a file that uses the library declares it, and other files define
// it inline.
#if defined(HEED_CALLS_COMPILED)
#define HEED_COMPILED_FUNCTION
#else
#define HEED_COMPILED_FUNCTION inline
#endif
