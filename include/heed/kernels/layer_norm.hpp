// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <heed/core/compiled.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/simd.hpp>

/// Layer normalization.
///
///     y = g ⊙ x̂ + b,  x̂ = (x - μ) ρ,  μ = mean of x,  ρ = 1 / sqrt(mean of (x - μ)² + ε)      Ba et al. 2016, eq. 4
///
/// Backward, with d = g ⊙ ∂y:
///
///     ∂x += ρ (d - mean(d) - x̂ mean(d ⊙ x̂)),   ∂g += Σ_rows ∂y ⊙ x̂,   ∂b += Σ_rows ∂y
namespace heed::inline HEED_TARGET::kernels {

/// rows of N numbers x; gain g and bias b [N].
template <class T>
struct layer_norm_rows {
    std::size_t rows, width;
    const T *x, *gain, *bias;
    T epsilon;
};

/// y [rows,N], and μ|ρ of each row into moments [rows,2].
template <class T>
void layer_norm(const layer_norm_rows<T>& of, T* moments, T* y)
{
    using namespace simd;
    const std::size_t N = of.width;
    detail::each_row(of.rows, detail::rows_a_shard(4 * N), [&](std::size_t row) {
        const T* const x = of.x + row * N;
        const T mean = sum_of(N, x) / static_cast<T>(N);
        vec<T> squares{};
        each_register<T>(N, [&](std::size_t at, std::size_t n) {
            const vec<T> apart = fill_behind<T>(load_first(x + at, n) - splat(mean), n, T(0));
            squares = fma(apart, apart, squares);
        });
        using std::sqrt;
        const T scale = T(1) / sqrt(sum(squares) / static_cast<T>(N) + of.epsilon);
        moments[2 * row] = mean;
        moments[2 * row + 1] = scale;
        transform(
            N, y + row * N,
            [mean, scale](auto v, auto gain, auto bias) { return fma((v - splat(mean)) * splat(scale), gain, bias); },
            x, of.gain, of.bias);
    });
}

/// Adds to d_x [rows,N], d_gain and d_bias [N]; null if not required.
template <class T>
void layer_norm_backward(const layer_norm_rows<T>& of, const T* moments, const T* d_y, T* d_x, T* d_gain, T* d_bias)
{
    using namespace simd;
    const std::size_t N = of.width;
    const auto normalized = [&](std::size_t row, std::size_t at, std::size_t n) {
        return (load_first(of.x + row * N + at, n) - splat(moments[2 * row])) * splat(moments[2 * row + 1]);
    };
    detail::each_row(d_x == nullptr ? 0 : of.rows, detail::rows_a_shard(8 * N), [&](std::size_t row) {
        const auto d = [&](std::size_t at, std::size_t n) {
            return load_first(d_y + row * N + at, n) * load_first(of.gain + at, n);
        };
        vec<T> plain{}, weighed{};
        each_register<T>(N, [&](std::size_t at, std::size_t n) {
            const vec<T> e = d(at, n);  // zeros after n
            plain += e;
            weighed = fma(e, normalized(row, at, n), weighed);
        });
        const vec<T> scale = splat(moments[2 * row + 1]);
        const vec<T> mean = splat(sum(plain) / static_cast<T>(N)), slope = splat(sum(weighed) / static_cast<T>(N));
        T* const dx = d_x + row * N;
        each_register<T>(N, [&](std::size_t at, std::size_t n) {
            const vec<T> all = d(at, n) - mean - normalized(row, at, n) * slope;
            store_first(dx + at, fma(scale, all, load_first(dx + at, n)), n);
        });
    });
    // By columns, so that the sums do not depend on the number of threads.
    if (d_gain == nullptr && d_bias == nullptr) return;
    const std::size_t blocks = (N + lanes<T> - 1) / lanes<T>;
    detail::each_row(blocks, detail::rows_a_shard(4 * of.rows * lanes<T>), [&](std::size_t block) {
        const std::size_t at = block * lanes<T>, n = std::min(lanes<T>, N - at);
        block_sum<T> gain, bias;
        for (std::size_t row = 0; row < of.rows; ++row) {
            const vec<T> d = load_first(d_y + row * N + at, n);
            gain.add_product(d, normalized(row, at, n));
            bias.add(d);
        }
        if (d_gain != nullptr) store_first(d_gain + at, load_first(d_gain + at, n) + gain.get(), n);
        if (d_bias != nullptr) store_first(d_bias + at, load_first(d_bias + at, n) + bias.get(), n);
    });
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_LAYER_NORM(X, T) \
    X(T, layer_norm, void, layer_norm, (const layer_norm_rows<T>& of, T* moments, T* y), (of, moments, y)) \
    X(T, layer_norm_backward, void, layer_norm_backward, (const layer_norm_rows<T>& of, const T* moments, const T* d_y, T* d_x, T* d_gain, T* d_bias), (of, moments, d_y, d_x, d_gain, d_bias))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_LAYER_NORM)

}  // namespace heed::inline HEED_TARGET::kernels
