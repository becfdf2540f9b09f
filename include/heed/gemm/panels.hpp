// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/simd/simd.hpp>

/// A matrix that is laid out once for many products with few rows each, like a decoder's weights in each step.
namespace heed::kernels {

namespace detail {

/// f(rows) with the number of rows, 1 to `most`, as a constant.
template <std::size_t most>
void with_rows(std::size_t rows, const auto& f)
{
    if constexpr (most > 1) {
        if (rows < most) return with_rows<most - 1>(rows, f);
    }
    f(std::integral_constant<std::size_t, most>{});
}

/// y = x W, or y += x W, for the rows that `W.read` has prepared, block by block and panel by panel.
template <class Panels, class T>
void multiply_by_panels(const Panels& W, std::size_t rows, const typename Panels::operand& x, T* y,
                        std::size_t y_stride, bool add)
{
    constexpr std::size_t width = Panels::width, most_rows = Panels::most_rows;
    const std::size_t K = W.rows(), N = W.columns(), count = W.count();
    const std::size_t blocks = (rows + most_rows - 1) / most_rows;
    // Few rows: threads share the panels. Many: they share the rows, so that each reads its own.
    const bool by_panel = blocks < 2 * threads();
    parallel_for(by_panel ? count : blocks,
                 (std::size_t{1} << 18) / (K * width * (by_panel ? rows : N / width + 1) + 1) + 1,
                 [&](std::size_t begin, std::size_t end, std::size_t) {
                     alignas(64) T tile[most_rows * width];
                     const std::size_t p0 = by_panel ? begin : 0, p1 = by_panel ? end : count;
                     const std::size_t b0 = by_panel ? 0 : begin, b1 = by_panel ? blocks : end;
                     for (std::size_t p = p0; p < p1; ++p) {
                         const std::size_t columns = std::min(width, N - p * width);
                         for (std::size_t b = b0; b < b1; ++b) {
                             const std::size_t first = b * most_rows, n = std::min(most_rows, rows - first);
                             W.multiply(n, p, x, first, tile);
                             for (std::size_t r = 0; r < n; ++r) {
                                 T* to = y + (first + r) * y_stride + p * width;
                                 const T* from = tile + r * width;
                                 if (add) {
                                     simd::transform(
                                         columns, to, [](auto a, auto c) { return a + c; }, to, from);
                                 } else {
                                     std::copy_n(from, columns, to);
                                 }
                             }
                         }
                     }
                 });
}

}  // namespace detail

/// W [K,N] in panels of some columns: [N/width][K][width], zeros past the last column. A product reads a panel in
/// order.
template <class T>
class panels {
public:
    static constexpr std::size_t registers = simd::register_bytes == 64 ? 4 : 2;  // of a row of a panel
    static constexpr std::size_t width = registers * simd::lanes<T>;
    static constexpr std::size_t most_rows = 6;  // rows of one product: their sums fill the registers

    /// W's rows are `stride` apart.
    void pack(std::size_t K, std::size_t N, const T* W, std::size_t stride)
    {
        K_ = K;
        N_ = N;
        values_.resize(count() * K * width);
        parallel_for(count(), (std::size_t{1} << 16) / (K * width + 1) + 1,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                         for (std::size_t p = begin; p < end; ++p) {
                             const std::size_t columns = std::min(width, N - p * width);
                             T* to = values_.data() + p * K * width;
                             for (std::size_t k = 0; k < K; ++k, to += width) {
                                 std::copy_n(W + k * stride + p * width, columns, to);
                                 std::fill(to + columns, to + width, T(0));
                             }
                         }
                     });
    }

    std::size_t count() const { return (N_ + width - 1) / width; }
    std::size_t rows() const { return K_; }
    std::size_t columns() const { return N_; }
    bool empty() const { return values_.empty(); }

    /// out[r][·] = x_r W_p for `R` rows of x, `stride` apart, and panel p. `out` [R,width].
    template <std::size_t R>
    void multiply(std::size_t p, const T* x, std::size_t stride, T* out) const
    {
        using namespace simd;
        vec<T> sum[R][registers] = {};
        const T* w = values_.data() + p * K_ * width;
        for (std::size_t k = 0; k < K_; ++k, w += width) {
            vec<T> column[registers];
            unrolled<registers>([&](auto c) { column[c] = load(w + c * lanes<T>); });
            unrolled<R>([&](auto r) {
                const vec<T> factor = splat(x[r * stride + k]);
                unrolled<registers>([&](auto c) { sum[r][c] = fma(factor, column[c], sum[r][c]); });
            });
        }
        unrolled<R>(
            [&](auto r) { unrolled<registers>([&](auto c) { store(out + r * width + c * lanes<T>, sum[r][c]); }); });
    }

    /// The same for any number of rows up to most_rows.
    void multiply(std::size_t rows, std::size_t p, const T* x, std::size_t stride, T* out) const
    {
        detail::with_rows<most_rows>(rows, [&](auto R) { multiply<R>(p, x, stride, out); });
    }

    /// Rows x [R,K], `stride` apart, as products read them.
    struct operand {
        const T* x;
        std::size_t stride;
    };
    operand read(std::size_t, const T* x, std::size_t stride, scratch&) const { return {x, stride}; }

    /// The product of panel p and `rows` rows from `first` on.
    void multiply(std::size_t rows, std::size_t p, const operand& x, std::size_t first, T* out) const
    {
        multiply(rows, p, x.x + first * x.stride, x.stride, out);
    }

    /// y = x W, or y += x W: x [rows,K], y [rows,N], their rows `x_stride` and `y_stride` apart.
    void multiply(std::size_t rows, const T* x, std::size_t x_stride, T* y, std::size_t y_stride, bool add) const
    {
        detail::multiply_by_panels(*this, rows, operand{x, x_stride}, y, y_stride, add);
    }

private:
    std::size_t K_ = 0, N_ = 0;
    std::vector<T> values_;
};

}  // namespace heed::kernels
