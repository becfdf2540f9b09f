// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed/kernels/simd.hpp>
#include <heed/ops/operation.hpp>

namespace heed::ops {

/// y_i = m_i x_i, where m_i is 0 with probability `rate`, else 1 / (1 − rate): x [...] -> [...]. Srivastava et al.
/// 2014.
///
///     ∂x_i += m_i ∂y_i
///
/// Which elements are dropped depends only on the stream and on an element's place, so a run can be repeated. Dropout
/// takes effect on a tape only; other tensors are returned unchanged, since inference drops nothing. Throws heed::error
/// if the rate is 1 or more.
struct dropout_op : operation<dropout_op> {
    template <tensor X>
    X operator()(const X& x, double rate, std::uint64_t stream) const
    {
        if constexpr (family_of<X>::rank == family_rank::taped) {
            if (rate >= 1) throw error("dropout: the rate is " + std::to_string(rate) + " but must be below 1");
            if (rate > 0) return operation<dropout_op>::operator()(x, rate, stream);
        }
        return x;
    }

    static auto shape(const auto& x, double, std::uint64_t) { return x.shape; }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, double rate, std::uint64_t stream, out<T, R> y)
    {
        each_block<T>(x.size(), rate, stream, [=](std::size_t first, std::size_t n, const T* mask) {
            simd::transform(
                n, y.data + first, [](auto v, auto m) { return v * m; }, x.data + first, mask);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, double rate, std::uint64_t stream, in<T, R>, in<T, R> d_y, adjoint<T, R> d_x)
    {
        each_block<T>(x.size(), rate, stream, [=](std::size_t first, std::size_t n, const T* mask) {
            simd::transform(
                n, d_x.data + first, [](auto sum, auto m, auto d) { return sum + m * d; },
                static_cast<const T*>(d_x.data + first), mask, d_y.data + first);
        });
    }

private:
    /// f(first element, count, their m) for blocks that fit in the cache, shared among threads.
    template <class T, class F>
    static void each_block(std::size_t n, double rate, std::uint64_t stream, F&& f)
    {
        constexpr std::size_t elements = 1024;
        const T kept = static_cast<T>(1 / (1 - rate));
        // One 64-bit number decides four elements, 16 bits each: finer than any rate in use.
        const auto least = static_cast<std::int32_t>(rate * 65536.0 + 0.5);
        parallel_for(
            n, std::size_t{1} << 15,
            [&](std::size_t begin, std::size_t end, std::size_t) {
                const T factor = kept;  // copies: nothing else changes them
                const std::int32_t bound = least;
                scratch here;
                T* const mask = here.take<T>(elements);
                auto* const bits = here.take<std::uint64_t>(elements / 4);
                auto* const parts = here.take<std::uint16_t>(elements);
                for (std::size_t first = begin; first < end; first += elements) {
                    const std::size_t count = std::min(elements, end - first), numbers = (count + 3) / 4;
                    // One loop each, which compilers turn into vector instructions.
                    for (std::size_t i = 0; i < numbers; ++i) bits[i] = mix(stream + first / 4 + i);
                    if constexpr (std::endian::native == std::endian::little) {
                        std::memcpy(parts, bits, numbers * sizeof *bits);
                    } else {
                        for (std::size_t i = 0; i < 4 * numbers; ++i)
                            parts[i] = static_cast<std::uint16_t>(bits[i / 4] >> (16 * (i % 4)));
                    }
                    for (std::size_t i = 0; i < count; ++i) mask[i] = static_cast<T>(parts[i] >= bound) * factor;
                    f(first, count, static_cast<const T*>(mask));
                }
            },
            64);
    }
};
inline constexpr dropout_op dropout{};

}  // namespace heed::ops
