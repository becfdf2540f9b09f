// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include <heed/core/workspace.hpp>
#include <heed/simd/simd.hpp>

/// heed's own matrix products, for use without a BLAS: Compiler Explorer, WebAssembly, header-only programs.
///
///     C = op(A) op(B) + β C
///
/// As in Goto, van de Geijn 2008: a block of op(B) that fits in the second-level cache is packed in panels a few
/// registers wide, and read once for every few rows of op(A); their sums stay in registers. A is read in place.
namespace heed::inline HEED_TARGET::kernels::own {

/// The elements of a matrix operand: element (i, j) is data[i · down + j · along].
template <class T>
struct strided {
    const T* data;
    std::size_t down, along;

    const T* at(std::size_t i, std::size_t j) const { return data + i * down + j * along; }
    strided transposed() const { return {data, along, down}; }
};

namespace detail {

inline constexpr std::size_t registers = simd::register_bytes == 64 ? 4 : 2;  // per row of a panel
template <class T>
inline constexpr std::size_t width = registers* simd::lanes<T>;
inline constexpr std::size_t most_rows = 6;  // rows of C at once: their sums and a panel's row fill the registers
inline constexpr std::size_t depth = 256;    // rows of a panel
inline constexpr std::size_t columns = 512;  // of the block of B that is packed at a time

/// out[k] = row k of B, `count` columns from column j on, followed by zeros: [rows][width].
template <class T>
void lay_out(std::size_t rows, std::size_t count, const strided<T>& B, T* out)
{
    if (B.along == 1) {
        for (std::size_t k = 0; k < rows; ++k, out += width<T>) {
            std::copy_n(B.at(k, 0), count, out);
            std::fill(out + count, out + width<T>, T(0));
        }
        return;
    }
    constexpr std::size_t L = simd::lanes<T>;
    if (count < width<T>) std::fill_n(out, rows * width<T>, T(0));
    for (std::size_t j = 0; j < count; j += L) {
        std::size_t k = 0;
        for (; B.down == 1 && j + L <= count && k + L <= rows; k += L) {
            simd::vec<T> square[L];
            simd::unrolled<L>([&](auto r) { square[r] = simd::load(B.at(k, j + r)); });
            simd::transpose<T>(square);
            simd::unrolled<L>([&](auto r) { simd::store(out + (k + r) * width<T> + j, square[r]); });
        }
        for (; k < rows; ++k)
            for (std::size_t i = j; i < std::min(j + L, count); ++i) out[k * width<T> + i] = *B.at(k, i);
    }
}

/// `count` rows of C += those of A times a panel, in all of the panel's columns or in the first `some`; without `add` C
/// is overwritten.
template <std::size_t count, class T>
HEED_SIMD_INLINE void rows_of_product(std::size_t rows, const strided<T>& A, const T* panel, bool add, T* C,
                                      std::size_t ldc, std::size_t some)
{
    using namespace simd;
    vec<T> sum[count][registers] = {};
    const T* a_k = A.data;
    for (std::size_t k = 0; k < rows; ++k, panel += width<T>, a_k += A.along) {
        vec<T> b[registers];
        unrolled<registers>([&](auto c) { b[c] = load(panel + c * lanes<T>); });
        unrolled<count>([&](auto r) {
            const vec<T> a = splat(a_k[r * A.down]);
            unrolled<registers>([&](auto c) { sum[r][c] = fma(a, b[c], sum[r][c]); });
        });
    }
    if (some == width<T>) {
        unrolled<count>([&](auto r) {
            T* const to = C + r * ldc;
            unrolled<registers>(
                [&](auto c) { store(to + c * lanes<T>, add ? load(to + c * lanes<T>) + sum[r][c] : sum[r][c]); });
        });
        return;
    }
    T all[count * width<T>];
    unrolled<count>(
        [&](auto r) { unrolled<registers>([&](auto c) { store(all + r * width<T> + c * lanes<T>, sum[r][c]); }); });
    for (std::size_t r = 0; r < count; ++r) {
        T* const to = C + r * ldc;
        for (std::size_t j = 0; j < some; ++j) to[j] = add ? to[j] + all[r * width<T> + j] : all[r * width<T> + j];
    }
}

/// All rows of C += A times a panel.
template <class T>
void times_panel(std::size_t M, std::size_t rows, const strided<T>& A, const T* panel, bool add, T* C, std::size_t ldc,
                 std::size_t some)
{
    std::size_t i = 0;
    const auto take = [&](auto count) {
        for (; i + count <= M; i += count)
            rows_of_product<count>(rows, {A.at(i, 0), A.down, A.along}, panel, add, C + i * ldc, ldc, some);
    };
    take(std::integral_constant<std::size_t, most_rows>{});
    take(std::integral_constant<std::size_t, 4>{});
    take(std::integral_constant<std::size_t, 2>{});
    take(std::integral_constant<std::size_t, 1>{});
}

}  // namespace detail

/// C = A B + β C, with A [M,K], B [K,N] and C [M,N]; `ldc` is the row stride of C.
template <class T>
void gemm(std::size_t M, std::size_t N, std::size_t K, const strided<T>& A, const strided<T>& B, T beta, T* C,
          std::size_t ldc)
{
    using detail::width;
    if (beta != T(0) && beta != T(1)) {
        for (std::size_t i = 0; i < M; ++i)
            for (std::size_t j = 0; j < N; ++j) C[i * ldc + j] *= beta;
    }
    scratch here;
    const std::size_t panels = (std::min(N, detail::columns) + width<T> - 1) / width<T>;
    T* const part = here.take<T>(panels * std::min(K, detail::depth) * width<T>);
    for (std::size_t j0 = 0; j0 < N; j0 += detail::columns) {
        const std::size_t j1 = std::min(N, j0 + detail::columns);
        for (std::size_t k0 = 0; k0 < K; k0 += detail::depth) {
            const std::size_t rows = std::min(detail::depth, K - k0);
            for (std::size_t j = j0, p = 0; j < j1; j += width<T>, ++p) {
                const std::size_t some = std::min(width<T>, j1 - j);
                T* const panel = part + p * rows * width<T>;
                detail::lay_out(rows, some, {B.at(k0, j), B.down, B.along}, panel);
                detail::times_panel(M, rows, {A.at(0, k0), A.down, A.along}, panel, beta != T(0) || k0 > 0, C + j, ldc,
                                    some);
            }
        }
    }
}

/// y = A x + β y, with A [M,N]; `step` is the stride of x.
template <class T>
void gemv(std::size_t M, std::size_t N, const strided<T>& A, const T* x, std::size_t step, T beta, T* y)
{
    using namespace simd;
    scratch here;
    if (step != 1) {
        T* const copy = here.take<T>(N);
        for (std::size_t j = 0; j < N; ++j) copy[j] = x[j * step];
        x = copy;
    }
    if (A.along == 1) {  // one sum per row, four rows at once
        const auto rows = [&](auto count, std::size_t i) {
            vec<T> sum[count] = {};
            each_register<T>(N, [&](std::size_t j, std::size_t some) {
                const vec<T> factor = load_first(x + j, some);
                unrolled<count>([&](auto r) { sum[r] = fma(load_first(A.at(i + r, j), some), factor, sum[r]); });
            });
            unrolled<count>([&](auto r) {
                const T all = simd::sum(sum[r]);
                y[i + r] = beta == T(0) ? all : beta * y[i + r] + all;
            });
        };
        return in_groups<4>(0, M, rows);
    }
    // Rows of Aᵀ, each times an element of x.
    if (beta == T(0)) {
        std::fill_n(y, M, T(0));
    } else if (beta != T(1)) {
        for (std::size_t i = 0; i < M; ++i) y[i] *= beta;
    }
    const auto columns = [&](auto count, std::size_t j) {
        each_register<T>(M, [&](std::size_t i, std::size_t some) {
            vec<T> sum = load_first(y + i, some);
            unrolled<count>(
                [&](auto c) { sum = fma(splat(x[j + c]), load_first(A.data + (j + c) * A.along + i, some), sum); });
            store_first(y + i, sum, some);
        });
    };
    in_groups<8>(0, N, columns);
}

}  // namespace heed::inline HEED_TARGET::kernels::own
