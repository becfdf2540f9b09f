// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include <heed/simd/bfloat16.hpp>

#if defined(HEED_SIMD_BFLOAT16) && defined(HEED_TARGET_HAS_AMX) && defined(__linux__)
#define HEED_SIMD_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif

/// Products of small matrices of bfloat16 with the matrix registers of AMX (Intel, from Sapphire Rapids on).
///
///     Y (+)= A B        A [16 or 32, 32 n], B [32 n, 16 or 32], both bfloat16; Y and its sums are floats
///
/// A and B consist of pairs of bfloat16 (simd/bfloat16.hpp) along the sum: a row of A has 16 n pairs, and a row of B
/// has the pairs of two rows. Subnormal numbers count as 0.
namespace heed::inline HEED_TARGET::simd {

/// Rows of a matrix register, and its 32-bit columns.
inline constexpr std::size_t matrix_rows = 16;

#if defined(HEED_SIMD_AMX)

/// May this process use AMX? Linux (5.16 or later) grants it on request, once per process.
inline bool amx_is_permitted()
{
    constexpr int request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    static const bool permitted = syscall(SYS_arch_prctl, request, tile_data) == 0;
    return permitted;
}

namespace detail {
/// g++ 12 does not know that the instructions below read and write memory.
HEED_SIMD_INLINE void memory_in_order() { __asm__ volatile("" ::: "memory"); }
}  // namespace detail

/// During its lifetime, this thread's matrix registers have 16 rows of 64 bytes. Afterwards the thread has its earlier
/// configuration, and unless that was in use, the kernel need not save the registers. Does nothing without permission.
class amx_scope {
public:
    amx_scope()
    {
        if (!amx_is_permitted()) return;
        __asm__ volatile("sttilecfg %0" : "=m"(before_));  // g++ 12's intrinsic takes 8 of the 64 bytes
        configuration ours;
        ours.palette = 1;
        for (std::size_t i = 0; i < 8; ++i) {
            ours.row_bytes[i] = 64;
            ours.rows[i] = matrix_rows;
        }
        configure(ours);
    }
    ~amx_scope()
    {
        if (amx_is_permitted()) configure(before_);
    }
    amx_scope& operator=(amx_scope&&) = delete;

private:
    struct alignas(64) configuration {
        std::uint8_t palette = 0, start_row = 0, reserved[14] = {};
        std::uint16_t row_bytes[16] = {};
        std::uint8_t rows[16] = {};
    };

    static void configure(const configuration& how) { __asm__ volatile("ldtilecfg %0" : : "m"(how)); }

    configuration before_;
};

/// Y (+)= A B for 16 · `rows` by 16 · `columns` numbers, each 1 or 2, with sums over `steps` · 32 products. Distances
/// between rows are in elements of 32 bits. Needs an amx_scope.
template <std::size_t rows, std::size_t columns, bool add>
void amx_product(std::size_t steps, const std::int32_t* a, std::size_t a_stride, const std::int32_t* b,
                 std::size_t b_stride, float* y, std::size_t y_stride)
{
    const std::size_t a_bytes = 4 * a_stride, b_bytes = 4 * b_stride, y_bytes = 4 * y_stride;
    float* const below = y + matrix_rows * y_stride;
    detail::memory_in_order();
    if constexpr (add) {
        _tile_loadd(0, y, y_bytes);
        if constexpr (columns > 1) _tile_loadd(1, y + matrix_rows, y_bytes);
        if constexpr (rows > 1) _tile_loadd(2, below, y_bytes);
        if constexpr (rows > 1 && columns > 1) _tile_loadd(3, below + matrix_rows, y_bytes);
    } else {
        _tile_zero(0);
        if constexpr (columns > 1) _tile_zero(1);
        if constexpr (rows > 1) _tile_zero(2);
        if constexpr (rows > 1 && columns > 1) _tile_zero(3);
    }
    for (std::size_t k = 0; k < steps; ++k, a += matrix_rows, b += matrix_rows * b_stride) {
        _tile_loadd(4, a, a_bytes);
        _tile_loadd(6, b, b_bytes);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (columns > 1) {
            _tile_loadd(7, b + matrix_rows, b_bytes);
            _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (rows > 1) {
            _tile_loadd(5, a + matrix_rows * a_stride, a_bytes);
            _tile_dpbf16ps(2, 5, 6);
            if constexpr (columns > 1) _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, y, y_bytes);
    if constexpr (columns > 1) _tile_stored(1, y + matrix_rows, y_bytes);
    if constexpr (rows > 1) _tile_stored(2, below, y_bytes);
    if constexpr (rows > 1 && columns > 1) _tile_stored(3, below + matrix_rows, y_bytes);
    detail::memory_in_order();
}

#else

/// False: this code is compiled for processors without AMX.
constexpr bool amx_is_permitted() { return false; }
/// Does nothing, since there are no matrix registers.
class amx_scope {};

#endif

}  // namespace heed::inline HEED_TARGET::simd
