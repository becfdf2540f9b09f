// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>

#include <heed/core/arena.hpp>
#include <heed/core/mask.hpp>
#include <heed/kernels/sparse.hpp>
#include <heed/ops/operation.hpp>

/// Scores become weights otherwise than by softmax: sparsely, each by itself, or at another temperature.
namespace heed::ops {

namespace detail {

/// [B,T] or [B,T,D] as positions and what each of them has.
template <std::size_t R>
std::size_t width_of(const shape_of_rank<R>& shape)
{
    static_assert(R == 2 || R == 3, "heed: scores and weights are [B,T] or [B,T,D]");
    return R == 3 ? shape[R - 1] : 1;
}

}  // namespace detail

/// α_j = max(z_j − τ, 0)^power with τ such that Σ_j α_j = 1 over the positions of each row, see kernels/sparse.hpp:
/// e [B,T], or [B,T,D] with a τ for every dimension. Behind a row's length weights and gradients are 0.
template <int power>
struct sparse_weights_op : operation<sparse_weights_op<power>> {
    const char* name;

    constexpr explicit sparse_weights_op(const char* word) : name(word) {}

    template <class T, std::size_t R>
    static void compute(const shape_of_rank<R>& shape, const std::size_t* real, const T* scores, T* weights)
    {
        kernels::sparse_weights<power>(shape[0], shape[1], detail::width_of(shape), real, scores, weights);
    }

    template <plain_tensor E>
    auto plain(const E& scores, const lengths& real) const
    {
        using T = element_of<E>;
        const auto shape = shape_of(scores);
        real.require(name, shape[0], shape[1]);
        auto weights = storage_for<T, rank_of<E>>(shape);
        compute<T>(shape, real.data(), view_of(scores).data, weights.data());
        return weights;
    }
};
inline constexpr sparse_weights_op<1> sparsemax{"sparsemax"};
inline constexpr sparse_weights_op<2> entmax15{"entmax15"};

/// α_j = σ(e_j + bias), and 0 behind a row's length and where e_j is -inf: e [B,T] or [B,T,D].
struct sigmoid_weights_op : operation<sigmoid_weights_op> {
    template <class T, std::size_t R>
    static void compute(const shape_of_rank<R>& shape, const std::size_t* real, double bias, const T* scores,
                        T* weights)
    {
        const std::size_t width = detail::width_of(shape), row = shape[1] * width;
        const T shift = static_cast<T>(bias);
        parallel_for(shape[0], kernels::detail::rows_a_shard(row),
                     [=](std::size_t begin, std::size_t end, std::size_t) {
                         for (std::size_t b = begin; b < end; ++b) {
                             const std::size_t n = real[b] * width;
                             simd::transform(
                                 n, weights + b * row,
                                 [shift](simd::vec<T> e) {
                                     // 1 / (1 + exp(∞)) is a matter of how exp treats infinities.
                                     constexpr T none = -std::numeric_limits<T>::infinity();
                                     return simd::select(e == none, simd::vec<T>{}, simd::sigmoid(e + shift));
                                 },
                                 scores + b * row);
                             kernels::detail::zero(weights + b * row + n, row - n);
                         }
                     });
    }

    template <plain_tensor E>
    auto plain(const E& scores, const lengths& real, double bias) const
    {
        using T = element_of<E>;
        const auto shape = shape_of(scores);
        real.require("sigmoid_weights", shape[0], shape[1]);
        auto weights = storage_for<T, rank_of<E>>(shape);
        compute<T>(shape, real.data(), bias, view_of(scores).data, weights.data());
        return weights;
    }
};
inline constexpr sigmoid_weights_op sigmoid_weights{};

/// factor · (e_j − c) with c the greatest score that may be seen, one c for each row (and dimension): for normalizers
/// that a constant makes no difference to. Great scores keep their differences so, where factor · e_j would round them
/// away. seen: e, -inf where it is hidden; what is hidden may be NaN. c counts as a constant on the way back.
struct scale_from_greatest_op : operation<scale_from_greatest_op> {
    template <std::size_t R>
    static void check(const shape_of_rank<R>& e, const shape_of_rank<R>& seen, const lengths& real)
    {
        require_shape("scale_from_greatest", "what may be seen", seen, e, "the shape of the scores");
        real.require("scale_from_greatest", e[0], e[1]);
    }

    template <class T, std::size_t R>
    static void compute(const shape_of_rank<R>& shape, const std::size_t* real, double factor, const T* e,
                        const T* seen, T* y)
    {
        constexpr T none = -std::numeric_limits<T>::infinity();
        const std::size_t width = detail::width_of(shape), row = shape[1] * width;
        scratch memory;
        T* top = memory.take<T>(width);
        for (std::size_t at = 0; at < shape[0] * row; at += row) {
            const std::size_t n = real[at / row] * width;
            std::fill_n(top, width, none);
            for (std::size_t i = 0; i < n; i += width) {
                for (std::size_t d = 0; d < width; ++d) {
                    if (seen[at + i + d] != none && e[at + i + d] > top[d]) top[d] = e[at + i + d];
                }
            }
            for (std::size_t d = 0; d < width; ++d) top[d] = top[d] == none ? T(0) : top[d];
            for (std::size_t i = 0; i < n; i += width) {
                simd::transform(
                    width, y + at + i, [f = static_cast<T>(factor)](auto u, auto c) { return f * (u - c); }, e + at + i,
                    static_cast<const T*>(top));
            }
            kernels::detail::zero(y + at + n, row - n);
        }
    }

    template <plain_tensor E, plain_tensor S>
    auto plain(const E& e, const S& seen, const lengths& real, double factor) const
    {
        using T = element_of<E>;
        const auto shape = shape_of(e);
        check(shape, shape_of(seen), real);
        auto y = storage_for<T, rank_of<E>>(shape);
        compute<T>(shape, real.data(), factor, view_of(e).data, view_of(seen).data, y.data());
        return y;
    }
};
inline constexpr scale_from_greatest_op scale_from_greatest{};

}  // namespace heed::ops
