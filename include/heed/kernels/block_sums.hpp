// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/core/workspace.hpp>
#include <heed/simd/simd.hpp>

/// Sums of very many numbers that are as accurate as sums of a hundred.
///
/// A float to which a million numbers are added loses three digits or more. So numbers are added up in blocks, and the
/// sums of blocks with compensation (Knuth 1969, section 4.2.2; Neumaier 1974). A single block has the bits of a plain
/// sum. Blocks are counted from the first number: a result depends neither on threads nor on the rest of a batch.
namespace heed::inline HEED_TARGET::kernels {

/// Numbers per block: few enough that equal numbers, with rounding errors of one sign, keep six digits.
inline constexpr std::size_t numbers_of_block = 128;

namespace detail {

/// Scratch memory with n numbers x.
template <class T>
T* filled(scratch& here, std::size_t n, T x)
{
    T* const result = here.take<T>(n);
    std::fill_n(result, n, x);
    return result;
}

/// The rounding error of sum = a + b. NaN if a or b is not finite.
template <class V>
HEED_SIMD_INLINE V lost_in_sum(V a, V b, V sum)
{
    const V of_b = sum - a;
    return (a - (sum - of_b)) + (b - of_b);
}

/// y += x; the rounding error is added to `lost`.
template <class T>
inline void add_and_keep(std::size_t n, T* y, T* lost, const T* x)
{
    using namespace simd;
    each_register<T>(n, [&](std::size_t i, std::size_t count) {
        const vec<T> a = load_first(y + i, count), b = load_first(x + i, count), sum = a + b;
        store_first(lost + i, load_first(lost + i, count) + lost_in_sum(a, b, sum), count);
        store_first(y + i, sum, count);
    });
}

/// y += lost, unless that is NaN: the error of an infinite sum is NaN.
template <class T>
inline void add_lost(std::size_t n, T* y, const T* lost)
{
    using namespace simd;
    transform(
        n, y, [](auto sum, auto rest) { return select(rest == rest, sum + rest, sum); }, y, lost);
}

template <class T>
[[gnu::noinline]] void add_all_blocks(std::size_t rows, std::size_t n, T* y, const auto& f)
{
    scratch here;
    T *const part = here.take<T>(n), *const lost = filled(here, n, T(0));
    for (std::size_t first = 0; first < rows; first += numbers_of_block) {
        std::fill_n(part, n, T(0));
        f(first, std::min(rows, first + numbers_of_block), part);
        add_and_keep(n, y, lost, part);
    }
    add_lost(n, y, lost);
}

}  // namespace detail

/// y[j] += Σ_i x[i,j], j < n, block by block: f(first, last, to) adds the rows [first, last) to `to` [n].
template <class T>
HEED_SIMD_INLINE void add_in_blocks(std::size_t rows, std::size_t n, T* y, const auto& f)
{
    if (rows <= numbers_of_block) {
        f(std::size_t{0}, rows, y);
    } else {
        detail::add_all_blocks(rows, n, y, f);
    }
}

/// A sum of registers, lane by lane.
template <class T>
class block_sum {
public:
    HEED_SIMD_INLINE void add(simd::vec<T> x)
    {
        block_ += x;
        added();
    }
    /// += a b, rounded once
    HEED_SIMD_INLINE void add_product(simd::vec<T> a, simd::vec<T> b)
    {
        block_ = simd::fma(a, b, block_);
        added();
    }
    HEED_SIMD_INLINE simd::vec<T> get() const
    {
        const simd::vec<T> sum = total_ + block_;
        const simd::vec<T> rest = lost_ + detail::lost_in_sum(total_, block_, sum);
        return simd::select(rest == rest, sum + rest, sum);
    }

private:
    HEED_SIMD_INLINE void added()
    {
        if (++count_ < numbers_of_block) return;
        const simd::vec<T> sum = total_ + block_;
        lost_ += detail::lost_in_sum(total_, block_, sum);
        total_ = sum;
        block_ = simd::vec<T>{};
        count_ = 0;
    }

    simd::vec<T> block_{}, total_{}, lost_{};
    std::size_t count_ = 0;
};

}  // namespace heed::inline HEED_TARGET::kernels
