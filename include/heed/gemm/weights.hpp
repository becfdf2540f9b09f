// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>

#include <heed/gemm/blas.hpp>

/// Products with the weights of a model, in the model's number format or in fewer bits.
namespace heed::inline HEED_TARGET::kernels {

/// Weights of a model of floats in fewer bits, for the products of the threads that use them.
class quantized_weights {
public:
    virtual ~quantized_weights() = default;

    /// y = x W, or y += x W with `add`, as in times_weights. Returns false, and leaves y unchanged, if these weights do
    /// not contain W.
    virtual bool multiply(std::size_t rows, std::size_t N, std::size_t K, const float* x, const float* W, bool add,
                          float* y) const = 0;

    /// While an object of this class exists, this thread multiplies by the given weights; null: by the model's.
    class in_use {
    public:
        explicit in_use(const quantized_weights* these) : before_(current) { current = these; }
        ~in_use() { current = before_; }
        in_use& operator=(in_use&&) = delete;

    private:
        const quantized_weights* before_;
    };

    /// The weights that this thread uses; null if none.
    static const quantized_weights* of_this_thread() { return current; }

private:
    static inline thread_local const quantized_weights* current = nullptr;
};

/// y = x W, or y += x W with `add`: x [rows,K] and y [rows,N] contiguous, W [K,N] the weights of a model, or
/// consecutive rows of a matrix of weights. If the thread uses `quantized_weights` that contain W, these multiply.
template <class T>
void times_weights(std::size_t rows, std::size_t N, std::size_t K, const T* x, const T* W, bool add, T* y)
{
    if constexpr (std::is_same_v<T, float>) {
        const quantized_weights* const in_use = quantized_weights::of_this_thread();
        if (in_use != nullptr && rows > 0 && K > 0 && in_use->multiply(rows, N, K, x, W, add, y)) return;
    }
    blas::gemm(blas::op::plain, blas::op::plain, rows, N, K, x, W, add ? T(1) : T(0), y);
}

}  // namespace heed::inline HEED_TARGET::kernels
