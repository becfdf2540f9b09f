// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <heed/core/compiled.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/gemm/gemm_kernel.hpp>
#include <heed/simd/simd.hpp>

/// A matrix that is packed once for many products with few rows each, such as a decoder's weights in each step.
namespace heed::inline HEED_TARGET::kernels {

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

}  // namespace detail

template <class T>
class panels;

/// The number of columns in a panel.
template <class T>
std::size_t panel_width();

/// Packs W [K,N] with row stride `stride`.
template <class T>
void pack_panels(panels<T>& to, std::size_t K, std::size_t N, const T* W, std::size_t stride);

/// y = x W, or y += x W: x [rows,K] with row stride `x_stride`, y [rows,N] with `y_stride`. W: panels or int8_panels.
template <class Panels, class T>
void multiply_by_panels(const Panels& W, std::size_t rows, const T* x, std::size_t x_stride, T* y, std::size_t y_stride,
                        bool add);

// clang-format off
#define HEED_KERNELS_OF_PANELS(X, T) \
    X(T, panel_width, std::size_t, panel_width<T>, (), ()) \
    X(T, pack_panels, void, pack_panels, (panels<T>& to, std::size_t K, std::size_t N, const T* W, std::size_t stride), (to, K, N, W, stride)) \
    X(T, multiply_by_panels, void, multiply_by_panels, (const panels<T>& W, std::size_t rows, const T* x, std::size_t x_stride, T* y, std::size_t y_stride, bool add), (W, rows, x, x_stride, y, y_stride, add))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_PANELS)

/// Products with a matrix W [K,N] in panels of columns, of any element type. `Panels` has `read`, which makes an
/// operand of rows x, and `times<R>(p, operand, first, out)`, for R of its rows: out[r][·] = x_(first + r) W_p.
template <class Panels, class T>
class products_by_panels {
public:
    std::size_t count() const { return (N_ + panel_width<T>() - 1) / panel_width<T>(); }
    std::size_t rows() const { return K_; }
    std::size_t columns() const { return N_; }
    std::size_t columns_of_panels() const { return count() * panel_width<T>(); }  // at least columns()
    bool empty() const { return K_ == 0 || N_ == 0; }

    /// Throws heed::error if the panels were packed by code for another target than this function's, which has a
    /// different layout.
    void require_same_target() const
    {
        if (target_ == HEED_TARGET_NAME) [[likely]]
            return;
        throw error("panels: packed by code for heed::" + std::string(target_) +
                    ", multiplied by code for heed::" + HEED_TARGET_NAME + "; compile both files with the same flags");
    }

    /// The product of panel p and up to most_rows rows of an operand from `first` on: out [rows,width]. For kernels:
    /// the panels must be this target's.
    void multiply(std::size_t rows, std::size_t p, const auto& x, std::size_t first, T* out) const
    {
        detail::with_rows<most_rows>(rows, [&](auto R) { self().template times<R>(p, x, first, out); });
    }

    /// y = x W, or y += x W: see multiply_by_panels.
    void multiply(std::size_t rows, const T* x, std::size_t x_stride, T* y, std::size_t y_stride, bool add) const
    {
        multiply_by_panels(self(), rows, x, x_stride, y, y_stride, add);
    }

    /// multiply, with code for this target.
    void multiply_here(std::size_t rows, const T* x, std::size_t x_stride, T* y, std::size_t y_stride, bool add) const
    {
        require_same_target();
        scratch here;
        const auto operand = self().read(rows, x, x_stride, here);
        const std::size_t blocks = (rows + most_rows - 1) / most_rows;
        // Few rows: each thread reads some panels. Many: each thread reads some rows.
        const bool by_panel = blocks < 2 * threads();
        parallel_for(by_panel ? count() : blocks,
                     (std::size_t{1} << 18) / (K_ * width * (by_panel ? rows : N_ / width + 1) + 1) + 1,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                         alignas(64) T tile[most_rows * width];
                         const std::size_t p0 = by_panel ? begin : 0, p1 = by_panel ? end : count();
                         const std::size_t b0 = by_panel ? 0 : begin, b1 = by_panel ? blocks : end;
                         for (std::size_t p = p0; p < p1; ++p) {
                             const std::size_t columns = std::min(width, N_ - p * width);
                             for (std::size_t b = b0; b < b1; ++b) {
                                 const std::size_t first = b * most_rows, n = std::min(most_rows, rows - first);
                                 multiply(n, p, operand, first, tile);
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

protected:
    static constexpr std::size_t registers = own::detail::registers;  // per row of a panel
    static constexpr std::size_t width = own::detail::width<T>;
    static constexpr std::size_t most_rows =
        own::detail::most_rows;  // rows of one product: their sums fill the registers

    /// Sets the size to K rows and N columns, packed by this target's code.
    void begin(std::size_t K, std::size_t N)
    {
        K_ = K;
        N_ = N;
        target_ = HEED_TARGET_NAME;
    }

    std::size_t K_ = 0, N_ = 0;
    std::string_view target_ = HEED_TARGET_NAME;

private:
    const Panels& self() const { return static_cast<const Panels&>(*this); }
};

/// W in panels [N/width][K][width], zeros past the last column. A product reads a panel in order.
template <class T>
class panels : public products_by_panels<panels<T>, T> {
    using products_by_panels<panels<T>, T>::K_, products_by_panels<panels<T>, T>::N_;
    using products_by_panels<panels<T>, T>::registers, products_by_panels<panels<T>, T>::width;

public:
    /// W has row stride `stride`.
    void pack(std::size_t K, std::size_t N, const T* W, std::size_t stride) { pack_panels(*this, K, N, W, stride); }

    /// pack, with code for this target.
    void pack_here(std::size_t K, std::size_t N, const T* W, std::size_t stride)
    {
        this->begin(K, N);
        values_.resize(this->count() * K * width);
        if (K == 0) return;  // W may be null
        parallel_for(this->count(), (std::size_t{1} << 16) / (K * width + 1) + 1,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                         for (std::size_t p = begin; p < end; ++p)
                             own::detail::lay_out<T>(K, std::min(width, N - p * width), {W + p * width, stride, 1},
                                                     values_.data() + p * K * width);
                     });
    }

    /// Rows x [R,K] with row stride `stride`, as an operand of products.
    struct operand {
        const T* x;
        std::size_t stride;
    };
    operand read(std::size_t, const T* x, std::size_t stride, scratch&) const { return {x, stride}; }

    template <std::size_t R>
    void times(std::size_t p, const operand& rows, std::size_t first, T* out) const
    {
        using namespace simd;
        vec<T> sum[R][registers] = {};
        const T* const x = rows.x + first * rows.stride;
        const T* w = values_.data() + p * K_ * width;
        for (std::size_t k = 0; k < K_; ++k, w += width) {
            vec<T> column[registers];
            unrolled<registers>([&](auto c) { column[c] = load(w + c * lanes<T>); });
            unrolled<R>([&](auto r) {
                const vec<T> factor = splat(x[r * rows.stride + k]);
                unrolled<registers>([&](auto c) { sum[r][c] = fma(factor, column[c], sum[r][c]); });
            });
        }
        unrolled<R>(
            [&](auto r) { unrolled<registers>([&](auto c) { store(out + r * width + c * lanes<T>, sum[r][c]); }); });
    }

private:
    std::vector<T> values_;
};

template <class T>
std::size_t panel_width()
{
    return own::detail::width<T>;
}

template <class T>
void pack_panels(panels<T>& to, std::size_t K, std::size_t N, const T* W, std::size_t stride)
{
    to.pack_here(K, N, W, stride);
}

template <class Panels, class T>
void multiply_by_panels(const Panels& W, std::size_t rows, const T* x, std::size_t x_stride, T* y, std::size_t y_stride,
                        bool add)
{
    W.multiply_here(rows, x, x_stride, y, y_stride, add);
}

}  // namespace heed::inline HEED_TARGET::kernels
