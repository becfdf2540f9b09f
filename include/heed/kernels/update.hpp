// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstring>

#include <heed/core/parallel.hpp>
#include <heed/simd/simd.hpp>

/// Updates of parameters by their gradients: what all optimisers share.
namespace heed::kernels {

/// What an optimiser remembers of each number: up to two numbers. Null where it remembers less.
template <class T>
struct moments_of {
    T* first = nullptr;
    T* second = nullptr;

    moments_of from(std::size_t i) const
    {
        return {first == nullptr ? nullptr : first + i, second == nullptr ? nullptr : second + i};
    }
};

/// update(n, gradient, moments, parameters) on n parameters, shared by threads.
template <class T, class Update>
void update_all(std::size_t n, const Update& update, const T* gradient, moments_of<T> moments, T* parameters)
{
    parallel_for(
        n, std::size_t{1} << 14,
        [&](std::size_t begin, std::size_t end, std::size_t) {
            update(end - begin, gradient + begin, moments.from(begin), parameters + begin);
        },
        simd::lanes<T>);
}

/// The place of the gradient of the i-th touched row: row i of a small table, or its own row in a full one.
enum class gradient_rows { packed, in_place };

/// The same for some rows of a table [N,width]: row rows[i] for i < count, all different. The others are not touched.
template <class T, class Index, class Update>
void update_rows(std::size_t count, const Index* rows, std::size_t width, const Update& update, const T* gradient,
                 gradient_rows layout, moments_of<T> moments, T* parameters)
{
    const std::size_t grain = width == 0 ? count : ((std::size_t{1} << 14) + width - 1) / width;
    parallel_for(count, grain, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
            const std::size_t at = static_cast<std::size_t>(rows[i]) * width;
            update(width, gradient + (layout == gradient_rows::packed ? i * width : at), moments.from(at),
                   parameters + at);
        }
    });
}

/// Σ_i x_i², squared and summed in double.
template <class T>
double squared_norm(std::size_t n, const T* x)
{
    using namespace simd;
    constexpr std::size_t most = 16, least = std::size_t{1} << 15;
    double parts[most] = {};
    parallel_for(
        n, n / most + 1 > least ? n / most + 1 : least,
        [&](std::size_t begin, std::size_t end, std::size_t shard) {
            vec<double> sums[2] = {};
            std::size_t i = begin;
            for (; i + 2 * lanes<double> <= end; i += 2 * lanes<double>) {
                for (std::size_t part = 0; part < 2; ++part) {
                    typedef T source __attribute__((vector_size(lanes<double> * sizeof(T))));
                    source narrow;
                    std::memcpy(&narrow, x + i + part * lanes<double>, sizeof narrow);
                    const vec<double> wide = __builtin_convertvector(narrow, vec<double>);
                    sums[part] = simd::fma(wide, wide, sums[part]);
                }
            }
            double total = sum(sums[0] + sums[1]);
            for (; i < end; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
            parts[shard] = total;
        },
        simd::lanes<T>);
    double total = 0;
    for (const double part : parts) total += part;
    return total;
}

}  // namespace heed::kernels
