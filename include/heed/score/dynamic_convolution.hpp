// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/workspace_tensor.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/softmax.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/score/keys_up_to_query.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y[r,j] = w[r, j − i + c] if w has that column, else 0; i is the query's position: w [R,K] -> [R,T].
///
///     ∂w[r, j − i + c] += ∂y[r,j]
struct at_distances_op : operation<at_distances_op> {
    static shape_of_rank<2> shape(const auto& w, std::size_t, std::size_t positions, const lengths_view& count,
                                  const lengths_view& first)
    {
        detail::require_places("at_distances", count, first, w.shape[0]);
        return {w.shape[0], positions};
    }

    template <class T>
    static void forward(in<T, 2> w, std::size_t center, std::size_t, const lengths_view& count,
                        const lengths_view& first, out<T, 2> y)
    {
        std::fill_n(y.data, y.size(), T(0));
        each(w.shape, y.shape, center, count, first,
             [&](std::size_t to, std::size_t from) { y.data[to] = w.data[from]; });
    }

    template <class T>
    static void backward(in<T, 2> w, std::size_t center, std::size_t, const lengths_view& count,
                         const lengths_view& first, in<T, 2> y, in<T, 2> d_y, adjoint<T, 2> d_w)
    {
        each(w.shape, y.shape, center, count, first,
             [&](std::size_t to, std::size_t from) { d_w.data[from] += d_y.data[to]; });
    }

private:
    /// f(element of y, the matching element of w)
    static void each(const shape_of_rank<2>& w, const shape_of_rank<2>& y, std::size_t center,
                     const lengths_view& count, const lengths_view& first, const auto& f)
    {
        for (std::size_t r = 0; r < y[0]; ++r) {
            if (count[r] == 0) continue;
            // Column k belongs to the key begin + j = i + k − center.
            const auto shift = static_cast<std::ptrdiff_t>(count[r] - 1) - static_cast<std::ptrdiff_t>(center) -
                               static_cast<std::ptrdiff_t>(first.batch() == 0 ? 0 : first[r]);
            for (std::size_t k = 0; k < w[1]; ++k) {
                const std::ptrdiff_t j = static_cast<std::ptrdiff_t>(k) + shift;
                if (j >= 0 && j < static_cast<std::ptrdiff_t>(y[1]))
                    f(r * y[1] + static_cast<std::size_t>(j), r * w[1] + k);
            }
        }
    }
};
inline constexpr at_distances_op at_distances{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::score {

/// Which keys a kernel has weights for.
enum class kernel_over {
    both_sides,  // its column K / 2 belongs to the query's own position
    past         // its last column does: no key after the query, as in a decoder
};

/// Base class of a score that depends on the query and the distance alone: `kernel(query)` [...,K] holds the weights by
/// distance, before the softmax; `side` gives the column of distance 0. Throws shape_error if K is 0.
template <class Self>
struct convolution {
    static constexpr score_traits traits{
        .weights = weight_kind::per_position,
        .ignores_context = true,
        .reads_length = true,  // a query after the last position is placed there
        .reads_query_position = true,
        .nonnegative = true,
        .needs_all_positions = true,
    };

    auto project(const tensor auto& query) const { return self().kernel(query); }  // [B,K] or [B,S,K]

    auto start(const auto&) const { return keys_up_to_query{}; }
    auto observe_memory(const keys_up_to_query&, const auto& at, const auto& memory) const
    {
        return keys_up_to_query::of_step(at.step, memory);
    }
    auto advance(const keys_up_to_query&, const tensor auto&, const auto&) const { return keys_up_to_query{}; }

    auto match(const tensor auto& projected, const tensor auto& keys, const keys_up_to_query& now) const  // [B,T]
    {
        const std::size_t K = shape_of(projected)[1], own = self().side == kernel_over::past ? K - 1 : K / 2;
        return ops::at_distances(shares(projected), own, shape_of(keys)[1], now.count, now.first);
    }
    auto operator()(const tensor auto& query, const tensor auto& keys, const keys_up_to_query& now) const
    {
        return match(project(query), keys, now);
    }

    auto score_matrix(const tensor auto& queries, const tensor auto& keys,
                      const over::queries_from& from) const  // [B·S,T]
    {
        const auto [B, S, K] = shape_of(queries);
        return match(ops::reshaped(queries, B * S, K), keys, keys_up_to_query::of_all(from, S));
    }

private:
    const Self& self() const { return static_cast<const Self&>(*this); }

    /// softmax(kernels) over the last axis.
    static auto shares(const tensor auto& kernels)  // [R,K]
    {
        const auto [R, K] = shape_of(kernels);
        if (K == 0) throw shape_error("score::dynamic_convolution: the kernel has no weights; it needs at least one");
        auto* const all = workspace_family::take<std::size_t>(R);
        std::fill_n(all, R, K);
        return ops::softmax(kernels, lengths_view{all, R});
    }
};

/// Weights that follow from the query and the distance alone: each position computes its own kernel, shared by all
/// dimensions (dynamic convolution).
///
///     e_ij = softmax(q_i W)_{j−i+c},  c = ⌊K/2⌋; 0 where there is no such column      Wu et al. 2019, section 4
///
///     attention convolve{score::dynamic_convolution{W}, normalize::retention{}, combine::weighted_sum{}};
///
/// With a decay of 1, retention takes the scores as weights, o_i = Σ_k w_{i,k} x_{i+k−⌈(K+1)/2⌉} with 0 beyond the
/// sentence, as in the paper; `ratio` renormalizes them over the visible positions. Annotations are not read. In a
/// multi_head each head has its W, and the values are the head's.
///
/// The i-th query is at the i-th position of the memory, or at the last one if there are fewer. Each query has a row of
/// [T]; inside a window (normalize::local_m), a row of the window's positions. Deviations: no bias, as in the authors'
/// program. The gated linear unit around the convolution and the dropout on W are layers of a model.
template <class Matrix>
struct dynamic_convolution : convolution<dynamic_convolution<Matrix>> {
    Matrix W;  // [Q,K]
    kernel_over side;

    explicit dynamic_convolution(Matrix matrix, kernel_over which = kernel_over::both_sides)
        : W(std::move(matrix)), side(which)
    {}

    auto kernel(const tensor auto& query) const { return ops::linear(query, W); }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::dynamic_convolution{visit("W", self.W), self.side};
    }
};

/// Dynamic convolution with one kernel for all positions (lightweight convolution): only the query's position is read.
///
///     e_ij = softmax(w)_{j−i+c}                                                       Wu et al. 2019, section 3
template <class Vector>
struct lightweight_convolution : convolution<lightweight_convolution<Vector>> {
    Vector w;  // [K]
    kernel_over side;

    explicit lightweight_convolution(Vector vector, kernel_over which = kernel_over::both_sides)
        : w(std::move(vector)), side(which)
    {}

    auto kernel(const tensor auto& query) const  // the same kernel for each query
    {
        const auto shape = shape_of(query);
        if constexpr (rank_of<decltype(query)> == 3) {
            return ops::reshaped(ops::repeat(w, shape[0] * shape[1]), shape[0], shape[1], shape_of(w)[0]);
        } else {
            return ops::repeat(w, shape[0]);
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::lightweight_convolution{visit("w", self.w), self.side};
    }
};

}  // namespace heed::inline HEED_TARGET::score
