// SPDX-License-Identifier: BSD-3-Clause

// Files of one program, compiled for AVX2 and for any x86-64, with and without a BLAS. `targets any` calls only the
// functions of the second file, and must run on a processor without AVX2; `targets` calls both, and compares.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include <heed/core/parallel.hpp>
#include <heed/gemm/blas.hpp>

#include "targets.hpp"

namespace {

int faults = 0;

void check(bool holds, const char* what)
{
    if (holds) return;
    std::fprintf(stderr, "fails: %s\n", what);
    ++faults;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-5 * std::abs(b); }

template <class X>
X numbers(X x)
{
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i * 7 % 11) / 8 - 0.5F;
    return x;
}

}  // namespace

int main(int count, char** arguments)
try {
    const targets::inputs in{numbers(heed::zeros<float>(6, 16)), numbers(heed::zeros<float>(8, 16)),
                             numbers(heed::zeros<float>(16)), numbers(heed::zeros<float>(2, 19, 8)),
                             numbers(heed::zeros<float>(2, 6))};
    const double step = targets::step_for_any(in), train = targets::train_for_any(in);
    std::printf("%s: %.6f, %.6f\n", targets::name_for_any(), step, train);
    if (count > 1 && std::strcmp(arguments[1], "any") == 0) return 0;

    std::printf("%s\n", targets::name_for_avx2());
    check(std::string(targets::name_for_any()) != targets::name_for_avx2(), "each target has its name");
    check(std::string(targets::name_for_none()) == std::string(targets::name_for_any()) + "_without_blas",
          "the BLAS is part of the name");
    check(near(targets::step_for_avx2(in), step) && near(targets::step_for_none(in), step), "a step is the same");
    check(near(targets::train_for_avx2(in), train) && near(targets::train_for_none(in), train),
          "a gradient is the same");
    const std::string refused = targets::multiply_for_any(in);
    std::printf("%s\n", refused.c_str());
    check(refused.starts_with("panels: packed by code for heed::avx2"), "panels of the other target are refused");
    heed::set_threads(3);
    check(targets::threads_for_avx2() == 3, "threads are set for all targets");
    check(targets::shards_for_avx2() == 3, "a pool that another target made does the work");
    heed::set_threads(1);
    {
        const heed::batch_invariant guard;
        check(targets::batch_invariant_for_avx2(), "batch_invariant is for all targets");
    }
    try {
        targets::throw_for_avx2();
        check(false, "it throws");
    } catch (const heed::shape_error& thrown) {
        check(std::string(thrown.what()) == "from the other file", "an error of the other target is caught");
    }
    return faults;
} catch (const std::exception& thrown) {
    std::fprintf(stderr, "targets: %s\n", thrown.what());
    return 1;
}
