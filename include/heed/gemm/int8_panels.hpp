// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <heed/core/compiled.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/gemm/panels.hpp>
#include <heed/simd/simd.hpp>

// Instructions that multiply bytes and add four products to a 32-bit integer. HEED_INT8_PORTABLE disables them.
#if !defined(HEED_SIMD_PORTABLE) && !defined(HEED_INT8_PORTABLE)
#if defined(HEED_SIMD_AVX512) && defined(__AVX512VNNI__)
#define HEED_INT8_AVX512
#elif defined(HEED_SIMD_AVX) && defined(__AVXVNNI__) && !defined(HEED_SIMD_AVX512)
#define HEED_INT8_AVX
#endif
#endif

/// Products with an 8-bit matrix.
///
///     W[k,n] ≈ s_n w[k,n],  x[r,k] ≈ f_r q[r,k]          w, q integers from -127 to 127
///     s_n = max_k |W[k,n]| / 127,  f_r = max_k |x[r,k]| / 127
///     (x W)[r,n] ≈ f_r s_n Σ_k q[r,k] w[k,n]
///
/// Weights have one scale per column, activations one per row, computed at run time (Jacob et al. 2018, with zero
/// points of 0; scales per output as in Krishnamoorthi 2018). Sums are exact 32-bit integers, so the result is the same
/// for every register width. The instructions multiply unsigned by signed bytes: activations are stored as q + 128, and
/// sums start at -128 Σ_k w[k,n].
namespace heed::inline HEED_TARGET::kernels {

class int8_panels;

/// Does the compiler's target, or with heed::compiled the processor, multiply bytes faster than floats (AVX-512 VNNI or
/// AVX-VNNI)? Other targets compute the same integers, but slowly.
template <class T = float>
bool int8_is_fast()
{
#if defined(HEED_INT8_AVX512) || defined(HEED_INT8_AVX)
    return true;
#else
    return false;
#endif
}

/// Packs W [K,N] with row stride `stride`. `scales`: see int8_panels::pack.
template <class T>
void pack_int8_panels(int8_panels& to, std::size_t K, std::size_t N, const T* W, std::size_t stride, const T* scales);

// clang-format off
#define HEED_KERNELS_OF_INT8_PANELS(X, T) \
    X(T, int8_is_fast, bool, int8_is_fast<T>, (), ()) \
    X(T, pack_int8_panels, void, pack_int8_panels, (int8_panels& to, std::size_t K, std::size_t N, const T* W, std::size_t stride, const T* scales), (to, K, N, W, stride, scales)) \
    X(T, multiply_by_int8_panels, void, multiply_by_panels, (const int8_panels& W, std::size_t rows, const T* x, std::size_t x_stride, T* y, std::size_t y_stride, bool add), (W, rows, x, x_stride, y, y_stride, add))
// clang-format on
HEED_COMPILED_KERNELS_OF_FLOATS(HEED_KERNELS_OF_INT8_PANELS)

namespace detail {

/// sum[i] + Σ_j activations[j] weights[4i + j] for j < 4: `activations` are four unsigned bytes in each lane, `weights`
/// four signed ones.
HEED_SIMD_INLINE simd::mask<float> add_products_of_bytes(simd::mask<float> sum, simd::mask<float> activations,
                                                         simd::mask<float> weights)
{
#if defined(HEED_INT8_AVX512)
    return reinterpret_cast<simd::mask<float>>(_mm512_dpbusd_epi32(
        reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(activations), reinterpret_cast<__m512i>(weights)));
#elif defined(HEED_INT8_AVX)
    return reinterpret_cast<simd::mask<float>>(_mm256_dpbusd_avx_epi32(
        reinterpret_cast<__m256i>(sum), reinterpret_cast<__m256i>(activations), reinterpret_cast<__m256i>(weights)));
#else
    simd::unrolled<4>([&](auto j) {
        const simd::mask<float> a = (activations >> static_cast<int>(8 * j)) & 255;
        sum += a * ((weights << static_cast<int>(24 - 8 * j)) >> 24);
    });
    return sum;
#endif
}

/// x f rounded to the nearest integer, ties to even, for |x f| < 2^22.
HEED_SIMD_INLINE simd::mask<float> rounded(simd::vec<float> x, simd::vec<float> f)
{
    const simd::vec<float> round = simd::splat(12582912.0f);  // 1.5 · 2^23
    return simd::bits_of(simd::as_written(simd::as_written(x * f) + round)) - simd::bits_of(round);
}

/// The maximum |x[i]|; NaN or infinite if any x[i] is.
inline float greatest_magnitude(std::size_t n, const float* x)
{
    using namespace simd;
    // The bits of magnitudes have the order of the magnitudes, with NaN above all.
    mask<float> top{};
    each_register<float>(n, [&](std::size_t i, std::size_t count) {
        const mask<float> bits = bits_of(load_first(x + i, count)) & 0x7fffffff;
        top = bits > top ? bits : top;
    });
    std::int32_t bits = 0;
    for (std::size_t i = 0; i < lanes<float>; ++i) bits = std::max(bits, top[i]);
    float greatest;
    std::memcpy(&greatest, &bits, sizeof greatest);
    return greatest;
}

/// 127 / greatest, or 0 where all numbers are 0, or so small that their quotients would overflow, or not finite.
inline float steps_per_unit(float greatest) { return greatest > 1e-30f && greatest < 1e30f ? 127.0f / greatest : 0.0f; }

/// The scale f of numbers up to `greatest`: 0 where steps_per_unit is 0, but NaN for numbers that are not finite or too
/// large, so that every product with them is NaN.
inline float scale_of(float greatest)
{
    if (greatest < 1e30f) return greatest > 1e-30f ? greatest / 127.0f : 0.0f;
    return std::numeric_limits<float>::quiet_NaN();
}

}  // namespace detail

/// Rows of activations in 8 bits: x[r,k] ≈ scale[r] (bytes[r,k] - 128).
struct int8_rows {
    const std::uint8_t* bytes;  // [R,stride]
    const float* scale;         // [R]
    std::size_t stride;         // a multiple of 4, at least K
};

/// Quantizes a row x [K] to 8 bits: bytes [stride], where those from K on are 128. Returns the scale.
inline float to_int8(std::size_t K, const float* x, std::uint8_t* bytes, std::size_t stride)
{
    using namespace simd;
    const float greatest = detail::greatest_magnitude(K, x);
    const float factor = detail::steps_per_unit(greatest);
    const vec<float> f = splat(factor);
    each_register<float>(K, [&](std::size_t i, std::size_t count) {
        const mask<float> all = factor == 0.0f ? mask<float>{} : detail::rounded(load_first(x + i, count), f);
#if defined(HEED_SIMD_AVX512)
        const __m128i small = _mm512_maskz_cvtepi32_epi8(HEED_SIMD_ALL16, reinterpret_cast<__m512i>(all + 128));
#else
        typedef std::uint8_t narrow __attribute__((vector_size(lanes<float>)));
        const narrow small = __builtin_convertvector(all + 128, narrow);
#endif
        std::memcpy(bytes + i, &small, count);
    });
    std::fill(bytes + K, bytes + stride, std::uint8_t{128});
    return detail::scale_of(greatest);
}

/// W [K,N] in 8 bits, packed in panels like kernels::panels: [N/width][K/4][width][4], zeros past the last row and
/// column.
class int8_panels : public products_by_panels<int8_panels, float> {
public:
    static constexpr std::size_t longest = std::size_t{1} << 16;  // maximum K, beyond which sums could overflow

    using operand = int8_rows;

    /// W has row stride `stride`. `scales` [N]: those of the matrix that W is a slice of; without them, W's own. Throws
    /// heed::error if W has more than 65536 rows.
    void pack(std::size_t K, std::size_t N, const float* W, std::size_t stride, const float* scales = nullptr)
    {
        pack_int8_panels(*this, K, N, W, stride, scales);
    }

    /// pack, with code for this target.
    void pack_here(std::size_t K, std::size_t N, const float* W, std::size_t stride, const float* scales)
    {
        if (K > longest)
            throw error("int8: a matrix of " + counted(K, "row") + "; 32-bit sums are exact up to " +
                        std::to_string(longest));
        begin(K, N);
        scales_.assign(count() * width, 0.0f);
        offsets_.assign(count() * width, 0);
        values_.assign(count() * width * 4 * quads(), 0);
        if (scales == nullptr) {
            column_scales(K, N, W, stride, scales_.data());
        } else {
            std::copy_n(scales, N, scales_.data());
        }
        parallel_for(count(), (std::size_t{1} << 15) / (K * width + 1) + 1,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                         for (std::size_t p = begin; p < end; ++p) pack_panel(p, W, stride);
                     });
    }

    /// s [N] of W [K,N] with row stride `stride`.
    static void column_scales(std::size_t K, std::size_t N, const float* W, std::size_t stride, float* s)
    {
        using namespace simd;
        each_register<float>(N, [&](std::size_t j, std::size_t some) {
            mask<float> top{};
            for (std::size_t k = 0; k < K; ++k) {
                const mask<float> bits = bits_of(load_first(W + k * stride + j, some)) & 0x7fffffff;
                top = bits > top ? bits : top;
            }
            const vec<float> greatest = bits_as(vec<float>{}, top);
            for (std::size_t i = 0; i < some; ++i) s[j + i] = detail::scale_of(greatest[i]);
        });
    }

    /// Rows x [R,K] with row stride `stride`, as an operand of products.
    operand read(std::size_t rows, const float* x, std::size_t stride, scratch& here) const
    {
        const std::size_t wide = 4 * quads();
        auto* const bytes = reinterpret_cast<std::uint8_t*>(here.take<float>(rows * quads()));
        float* const scale = here.take<float>(rows);
        for (std::size_t r = 0; r < rows; ++r) scale[r] = to_int8(K_, x + r * stride, bytes + r * wide, wide);
        return {bytes, scale, wide};
    }

    template <std::size_t R>
    void times(std::size_t p, const operand& x, std::size_t first, float* out) const
    {
        using namespace simd;
        mask<float> sum[R][registers];  // local: g++ 12 writes an array parameter in every step
        unrolled<registers>([&](auto c) {
            const mask<float> begin = load_integers(offsets_.data() + p * width + c * lanes<float>);
            unrolled<R>([&](auto r) { sum[r][c] = begin; });
        });
        const std::int8_t* w = values_.data() + p * quads() * 4 * width;
        const std::uint8_t* const row = x.bytes + first * x.stride;
        for (std::size_t q = 0; q < quads(); ++q, w += 4 * width) {
            mask<float> column[registers];
            unrolled<registers>([&](auto c) { column[c] = load_integers(w + c * register_bytes); });
            unrolled<R>([&](auto r) {
                std::int32_t four;
                std::memcpy(&four, row + r * x.stride + 4 * q, sizeof four);
                const mask<float> all = mask<float>{} + four;
                unrolled<registers>(
                    [&](auto c) { sum[r][c] = detail::add_products_of_bytes(sum[r][c], all, column[c]); });
            });
        }
        unrolled<R>([&](auto r) {
            const vec<float> f = splat(x.scale[first + r]);
            unrolled<registers>([&](auto c) {
                const vec<float> s = load(scales_.data() + p * width + c * lanes<float>);
                store(out + r * width + c * lanes<float>, __builtin_convertvector(sum[r][c], vec<float>) * f * s);
            });
        });
    }

private:
    std::size_t quads() const { return (K_ + 3) / 4; }

    static simd::mask<float> load_integers(const void* from)
    {
        simd::mask<float> v;
        std::memcpy(&v, from, sizeof v);
        return v;
    }

    void pack_panel(std::size_t p, const float* W, std::size_t stride)
    {
        const std::size_t columns = std::min(width, N_ - p * width);
        std::int8_t* const to = values_.data() + p * quads() * 4 * width;
        float factor[width];
        for (std::size_t c = 0; c < columns; ++c) {
            const float s = scales_[p * width + c];
            factor[c] = s > 0 ? 1.0f / s : 0.0f;  // 0 for NaN
        }
        for (std::size_t k = 0; k < K_; ++k) {
            const float* const row = W + k * stride + p * width;
            std::int8_t* const at = to + k / 4 * 4 * width + k % 4;
            for (std::size_t c = 0; c < columns; ++c) {
                // max, since the scale may come from a file; casting a non-finite number to an integer is undefined
                const float x = factor[c] > 0 ? row[c] * factor[c] : 0.0f;
                const float within = std::max(-127.0f, std::min(127.0f, x));
                const auto w =
                    static_cast<std::int8_t>(static_cast<std::int32_t>(within + (within < 0 ? -0.5f : 0.5f)));
                at[4 * c] = w;
                offsets_[p * width + c] -= 128 * w;
            }
        }
    }

    std::vector<float> scales_;          // [panels · width]
    std::vector<std::int32_t> offsets_;  // [panels · width]
    std::vector<std::int8_t> values_;
};

template <class T>
void pack_int8_panels(int8_panels& to, std::size_t K, std::size_t N, const T* W, std::size_t stride, const T* scales)
{
    to.pack_here(K, N, W, stride, scales);
}

}  // namespace heed::inline HEED_TARGET::kernels
