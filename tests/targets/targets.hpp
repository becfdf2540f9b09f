// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/tensor.hpp>
#include <heed/gemm/panels.hpp>

/// Functions of three files of one program: compiled for AVX2, for any x86-64, and for any x86-64 without a BLAS.
namespace targets {

struct inputs {
    heed::array<float, 2> W, U;
    heed::array<float, 1> v;
    heed::array<float, 3> annotations;
    heed::array<float, 2> query;
};

/// The sum of the contexts of three steps of additive attention.
double step_for_avx2(const inputs& from);
double step_for_any(const inputs& from);
double step_for_none(const inputs& from);

/// The sum of the absolute gradients of W, for a step on a tape.
double train_for_avx2(const inputs& from);
double train_for_any(const inputs& from);
double train_for_none(const inputs& from);

/// The name of their target.
const char* name_for_avx2();
const char* name_for_any();
const char* name_for_none();

/// The linker's name of a function does not include the return type.
heed::kernels::panels<float> panels_for_avx2(const inputs& from);

/// Multiplies panels of the other file. Returns the error's message, or "" without an error.
const char* multiply_for_any(const inputs& from);

/// The settings that the other file reads.
std::size_t threads_for_avx2();
bool batch_invariant_for_avx2();

/// The number of threads that share a sum, or 0 if it is wrong.
std::size_t shards_for_avx2();

/// Throws heed::shape_error.
void throw_for_avx2();

}  // namespace targets
