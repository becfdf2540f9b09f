// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/gemm/blas.hpp>
#include <heed/kernels/dot.hpp>
#include <heed/kernels/layer_norm.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/top_k_words.hpp>
#include <heed/ops/tiles.hpp>

/// Kernels shared by models are compiled once, in kernels.cpp: HEED_TRANSLATOR_KERNELS(extern) declares them,
/// HEED_TRANSLATOR_KERNELS() compiles them. Without this, the files of the Transformer take 50% longer to compile.
namespace heed {

#define HEED_TRANSLATOR_TILES(extern, registers)                                                                       \
    extern template void kernels::tiles::forward<registers, kernels::tiles::inner_product>(                            \
        const kernels::tiles::query_block<float>&, const kernels::tiles::softmax&, kernels::tiles::rows<float>,        \
        float*);                                                                                                       \
    extern template void kernels::tiles::backward<registers, kernels::tiles::inner_product>(                           \
        const kernels::tiles::query_block<float>&, const kernels::tiles::softmax&,                                     \
        const kernels::tiles::forward_results<float>&, const kernels::tiles::head_gradients<float>&,                   \
        const ops::detail::every_so_many&, bool);

#if defined(HEED_CALLS_COMPILED)  // provided by heed::compiled
#define HEED_TRANSLATOR_KERNELS(extern)                                                                                \
    extern template void kernels::output_top_k(std::size_t, const float*, const kernels::weight_panels<float>&,        \
                                               const float*, const kernels::top_k_words<float>&);
#else
#define HEED_TRANSLATOR_KERNELS(extern)                                                                                \
    HEED_TRANSLATOR_TILES(extern, 1)                                                                                   \
    HEED_TRANSLATOR_TILES(extern, kernels::tiles::most_registers_of<float>)                                            \
    extern template void blas::gemm(blas::op, blas::op, std::size_t, std::size_t, std::size_t, const float*,           \
                                    std::size_t, const float*, std::size_t, float, float*, std::size_t);               \
    extern template void kernels::output_top_k(std::size_t, const float*, const kernels::weight_panels<float>&,        \
                                               const float*, const kernels::top_k_words<float>&);                      \
    extern template void kernels::dot_forward(const kernels::dot_step<float>&, float*, float*);                        \
    extern template void kernels::dot_backward(const kernels::dot_step<float>&, const float*, const float*,            \
                                               const float*, float*, float*, float*);                                  \
    extern template void kernels::layer_norm(const kernels::layer_norm_rows<float>&, float*, float*);                  \
    extern template void kernels::layer_norm_backward(const kernels::layer_norm_rows<float>&, const float*,            \
                                                      const float*, float*, float*, float*);                           \
    extern template void kernels::softmax_per_dimension(std::size_t, std::size_t, std::size_t, const std::size_t*,     \
                                                        const float*, float*);                                         \
    extern template void kernels::softmax_per_dimension_backward(                                                      \
        std::size_t, std::size_t, std::size_t, const std::size_t*, const float*, const float*, float*);
#endif

HEED_TRANSLATOR_KERNELS(extern)

}  // namespace heed
