// SPDX-License-Identifier: BSD-3-Clause
//
// The functions for the register width WIDTH, with the compiler's flags for it.
#include <cstddef>

#include <support/functions_of_registers.hpp>

#include "widths.hpp"

namespace {

using namespace heed;

template <class F, class T>
void values(std::size_t n, const T* x, T* y)
{
    simd::transform(
        n, y, [](auto v) { return F::of(v); }, x);
}

struct table {
    every_float::compiled_function functions[64];

    table()
    {
        std::size_t i = 0;
        accuracy::each_function([&](auto f) {
            using F = decltype(f);
            functions[i++] = {F::name, values<F, float>, values<F, double>};
        });
    }
};
const table all;

}  // namespace

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
const every_float::width every_float::WIDTH = {TEXT(WIDTH), all.functions, simd::lanes<float>};
