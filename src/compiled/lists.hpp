// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/gemm/blas.hpp>
#include <heed/gemm/int8_panels.hpp>
#include <heed/gemm/panels.hpp>
#include <heed/gemm/products_in_bfloat16.hpp>
#include <heed/kernels/additive.hpp>
#include <heed/kernels/coverage.hpp>
#include <heed/kernels/cross_entropy.hpp>
#include <heed/kernels/dot.hpp>
#include <heed/kernels/gated_linear.hpp>
#include <heed/kernels/layer_norm.hpp>
#include <heed/kernels/optimizers.hpp>
#include <heed/kernels/per_dimension.hpp>
#include <heed/kernels/recurrent.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/sparse.hpp>
#include <heed/kernels/top_k_words.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/tiles.hpp>
#include <heed/ops/tiles_in_bfloat16.hpp>

/// The contents of heed::compiled, by namespace: X(T, id, result, name, parameters, arguments) for each function.
#define HEED_EVERY_KERNEL(X, T)                                                                                        \
    HEED_KERNELS_OF_ADDITIVE(X, T)                                                                                     \
    HEED_KERNELS_OF_COVERAGE(X, T)                                                                                     \
    HEED_KERNELS_OF_CROSS_ENTROPY(X, T)                                                                                \
    HEED_KERNELS_OF_DOT(X, T)                                                                                          \
    HEED_KERNELS_OF_GATED_LINEAR(X, T)                                                                                 \
    HEED_KERNELS_OF_LAYER_NORM(X, T)                                                                                   \
    HEED_KERNELS_OF_OPTIMIZERS(X, T)                                                                                   \
    HEED_KERNELS_OF_PANELS(X, T)                                                                                       \
    HEED_KERNELS_OF_PER_DIMENSION(X, T)                                                                                \
    HEED_KERNELS_OF_RECURRENT(X, T)                                                                                    \
    HEED_KERNELS_OF_ROWS(X, T)                                                                                         \
    HEED_KERNELS_OF_SOFTMAX(X, T)                                                                                      \
    HEED_KERNELS_OF_SPARSE(X, T)                                                                                       \
    HEED_KERNELS_OF_TOP_K_WORDS(X, T)                                                                                  \
    HEED_KERNELS_OF_WEIGHTED_SUM(X, T)
#define HEED_EVERY_KERNEL_OF_FLOATS(X)                                                                                 \
    HEED_KERNELS_OF_INT8_PANELS(X, float)                                                                              \
    HEED_KERNELS_OF_TOP_K_INT8_WORDS(X, float)
#define HEED_IN_KERNELS(X) HEED_EVERY_KERNEL(X, float) HEED_EVERY_KERNEL(X, double) HEED_EVERY_KERNEL_OF_FLOATS(X)
#define HEED_IN_BLAS(X) HEED_KERNELS_OF_BLAS(X, float) HEED_KERNELS_OF_BLAS(X, double)
#define HEED_EVERY_OPERATION(X, T)                                                                                     \
    HEED_OPERATIONS_ELEMENTWISE(X, T)                                                                                  \
    HEED_OPERATIONS_OF_TILES(X, T)
#define HEED_IN_OPERATIONS(X)                                                                                          \
    HEED_EVERY_OPERATION(X, float) HEED_EVERY_OPERATION(X, double) HEED_OPERATIONS_OF_BFLOAT16_TILES(X, float)
#define HEED_IN_BLAS_DETAIL(X) HEED_KERNELS_OF_BFLOAT16(X, float)

/// A kernel of any type. Its parameter structs have the same layout for all targets.
using heed_kernel = void (*)();

/// The index of each kernel in the table of a target.
#define HEED_PLACE(T, id, result, name, parameters, arguments) id##_##T,
enum heed_place {
    HEED_IN_KERNELS(HEED_PLACE) HEED_IN_BLAS(HEED_PLACE) HEED_IN_BLAS_DETAIL(HEED_PLACE) HEED_IN_OPERATIONS(HEED_PLACE)
        heed_kernel_count
};
#undef HEED_PLACE

/// Puts the kernels of a target into a table, by index.
#define HEED_PUT(T, id, result, name, parameters, arguments)                                                           \
    table[id##_##T] = reinterpret_cast<heed_kernel>(static_cast<result(*) parameters>(&name));

/// The last two: only the kernels of bfloat16.
extern "C" {
void heed_kernels_sse2(heed_kernel* table);
void heed_kernels_avx2(heed_kernel* table);
void heed_kernels_avx512(heed_kernel* table);
void heed_kernels_avx512_vnni(heed_kernel* table);
void heed_kernels_avx512_bf16(heed_kernel* table);
void heed_kernels_avx512_amx(heed_kernel* table);
}
