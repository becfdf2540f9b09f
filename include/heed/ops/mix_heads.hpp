// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/kernels/dot.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>

/// The mixing of heads in talking-heads attention: Shazeer, Lan, Cheng, Ding and Hou 2020, section 4.
namespace heed::inline HEED_TARGET::ops {

/// y[g] = Σ_h P[h,g] x[h], heads mixed elementwise: x [n,R,T], P [n,m] -> [m,R,T].
///
///     ∂x[h] += Σ_g P[h,g] ∂y[g],  ∂P[h,g] += x[h] · ∂y[g]
struct mix_heads_op : operation<mix_heads_op> {
    static shape_of_rank<3> shape(const auto& x, const auto& P)
    {
        require_shape("mix_heads", "the matrix", P.shape, shape_of_rank<2>{x.shape[0], P.shape[1]},
                      "one row for each head of ", x.shape);
        return {P.shape[1], x.shape[1], x.shape[2]};
    }

    template <class T>
    static void forward(in<T, 3> x, in<T, 2> P, out<T, 3> y)
    {
        const std::size_t n = P.shape[0], m = P.shape[1], size = x.shape[1] * x.shape[2];
        std::fill_n(y.data, y.size(), T(0));
        each_piece(size, [&](std::size_t at, std::size_t count) {
            for (std::size_t g = 0; g < m; ++g)
                for (std::size_t h = 0; h < n; ++h)
                    kernels::add_scaled(count, y.data + g * size + at, P.data[h * m + g], x.data + h * size + at);
        });
    }

    template <class T>
    static void backward(in<T, 3> x, in<T, 2> P, in<T, 3>, in<T, 3> d_y, adjoint<T, 3> d_x, adjoint<T, 2> d_P)
    {
        const std::size_t n = P.shape[0], m = P.shape[1], size = x.shape[1] * x.shape[2];
        each_piece(size, [&](std::size_t at, std::size_t count) {
            for (std::size_t h = 0; h < n; ++h) {
                for (std::size_t g = 0; g < m; ++g) {
                    const T* const d = d_y.data + g * size + at;
                    if (d_x) kernels::add_scaled(count, d_x.data + h * size + at, P.data[h * m + g], d);
                    if (d_P) d_P.data[h * m + g] += kernels::dot(count, x.data + h * size + at, d);
                }
            }
        });
    }

private:
    /// f(first, count): a chunk of elements that fits in the cache for all heads.
    static void each_piece(std::size_t size, const auto& f)
    {
        constexpr std::size_t piece = 512;
        for (std::size_t at = 0; at < size; at += piece) f(at, std::min(piece, size - at));
    }
};
inline constexpr mix_heads_op mix_heads{};

}  // namespace heed::inline HEED_TARGET::ops
