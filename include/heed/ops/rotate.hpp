// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>

#include <heed/ops/rows.hpp>

namespace heed::ops {

/// Which two numbers of a vector are turned together: neighbors (Su et al. 2021), or the i-th of each half (as in
/// GPT-NeoX and LLaMA's published weights).
enum class turned_pairs { neighbors, halves };

/// How vectors are turned with their position.
struct rotation {
    double base = 10000;
    turned_pairs pairs = turned_pairs::neighbors;
};

/// Each pair of numbers of a vector at position p is turned by the angle p · base^(−2m/N), m the pair:
///
///     y_a = cos(pθ_m) x_a − sin(pθ_m) x_b,  y_b = sin(pθ_m) x_a + cos(pθ_m) x_b       Su et al. 2021, eq. 34
///
/// x [B,T,N] stands at the positions first … first + T − 1; x [B,N] at `first`. N is even.
///
///     ∂x: ∂y turned back
struct rotate_op : operation<rotate_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& x, std::size_t, const rotation&)
    {
        constexpr std::size_t R = rank_of<decltype(x)>;
        if (x.shape[R - 1] % 2 != 0)
            detail::refuse("rotate: vectors of ", x.shape[R - 1], " numbers in ", x.shape,
                           "; pairs of them are turned, so there must be an even number");
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, std::size_t first, const rotation& how, out<T, R> y)
    {
        turn<T>(x.shape, first, how, 1, [&](std::size_t at, std::size_t a, std::size_t b, T c, T s) {
            const T u = x.data[at + a], v = x.data[at + b];
            y.data[at + a] = c * u - s * v;
            y.data[at + b] = s * u + c * v;
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, std::size_t first, const rotation& how, in<T, R>, in<T, R> d_y, adjoint<T, R> d_x)
    {
        turn<T>(x.shape, first, how, -1, [&](std::size_t at, std::size_t a, std::size_t b, T c, T s) {
            const T u = d_y.data[at + a], v = d_y.data[at + b];
            d_x.data[at + a] += c * u - s * v;
            d_x.data[at + b] += s * u + c * v;
        });
    }

private:
    /// f(where the vector begins, one of the pair, the other, cosine, sine) for each pair of each vector.
    template <class T, std::size_t R>
    static void turn(const shape_of_rank<R>& shape, std::size_t first, const rotation& how, int sign, const auto& f)
    {
        static_assert(R == 2 || R == 3, "heed: ops::rotate takes [B,N] or [B,T,N]");
        const std::size_t N = shape[R - 1], half = N / 2, positions = R == 3 ? shape[1] : 1;
        scratch here;
        T *const cosines = here.take<T>(positions * half), *const sines = here.take<T>(positions * half);
        // Sine and cosine by the angle sum formulas, since calls of both for each position would take as long as the
        // attention itself. They start anew at multiples of 32, so that a position has the same numbers wherever a
        // call begins.
        constexpr std::size_t anew = 32;
        for (std::size_t m = 0; m < half; ++m) {
            const double theta = std::pow(how.base, -2.0 * static_cast<double>(m) / static_cast<double>(N));
            const double next_c = std::cos(theta), next_s = std::sin(theta);
            double c = 1, s = 0;
            for (std::size_t at = first / anew * anew; at < first + positions; ++at) {
                if (at % anew == 0) {
                    c = std::cos(static_cast<double>(at) * theta);
                    s = std::sin(static_cast<double>(at) * theta);
                }
                if (at >= first) {
                    cosines[(at - first) * half + m] = static_cast<T>(c);
                    sines[(at - first) * half + m] = static_cast<T>(sign * s);
                }
                const double turned = c * next_c - s * next_s;
                s = s * next_c + c * next_s;
                c = turned;
            }
        }
        const bool halves = how.pairs == turned_pairs::halves;
        detail::each_row(detail::rows_of(shape), 4 * N, [=, &f](std::size_t row) {
            const std::size_t p = row % positions;
            for (std::size_t m = 0; m < half; ++m) {
                f(row * N, halves ? m : 2 * m, halves ? m + half : 2 * m + 1, cosines[p * half + m],
                  sines[p * half + m]);
            }
        });
    }
};
inline constexpr rotate_op rotate{};

}  // namespace heed::ops
