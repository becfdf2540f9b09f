// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

/// The functions of tests/support/functions_of_registers.hpp, compiled for each register width.
namespace every_float {

/// y[i] = f(x[i]), i < n
template <class T>
using loop = void (*)(std::size_t n, const T* x, T* y);

struct compiled_function {
    const char* name;
    loop<float> floats;
    loop<double> doubles;
};

/// The functions in the order of each_function.
struct width {
    const char* name;
    const compiled_function* functions;
    std::size_t lanes;
};

// Each is defined by a compilation of functions.cpp.
extern const width portable, sse2, avx2, avx512;

}  // namespace every_float
