// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/simd/simd.hpp>

/// The limits of a processor: multiplications with additions, and reading from memory.
namespace bench {

/// Multiply-adds in registers, two operations per step and lane. Returns a value that depends on all results.
[[gnu::noinline]] inline float multiply_and_add(std::size_t steps, float by, float plus)
{
    namespace simd = heed::simd;
    constexpr std::size_t chains = 12;  // more than are in flight at a time
    simd::vec<float> sums[chains], all{};
    for (std::size_t c = 0; c < chains; ++c) sums[c] = simd::splat<float>(0.5F + 0.01F * static_cast<float>(c));
    const simd::vec<float> factor = simd::splat<float>(by), term = simd::splat<float>(plus);
    for (std::size_t i = 0; i < steps; i += chains)
        simd::unrolled<chains>([&](auto c) { sums[c] = simd::fma(sums[c], factor, term); });
    for (const auto& sum : sums) all += sum;
    return simd::sum(all);
}

/// Σ_i x_i at the speed of memory, with prefetching as in the step. The result depends on all x_i.
[[gnu::noinline]] inline float read_all_of(std::size_t n, const float* x)
{
    namespace simd = heed::simd;
    constexpr std::size_t L = simd::lanes<float>;
    simd::vec<float> sums[4] = {};
    for (std::size_t i = 0; i + 4 * L <= n; i += 4 * L) {
        simd::fetch_ahead(x + i, 4 * L);
        simd::unrolled<4>([&](auto r) { sums[r] += simd::load(x + i + r * L); });
    }
    return simd::sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

}  // namespace bench
