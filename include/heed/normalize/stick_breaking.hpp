// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/ops/rows.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::ops {

/// w_j = σ(e_j) Π_{k>j} (1 − σ(e_k)) over the real positions of each row: e [B,T] or [B,T,D] -> the shape of e. From
/// the last position to the first, each takes a fraction of the remaining stick; 0 after the row and where e_j is -inf.
///
///     ∂e_j += w_j (1 − σ(e_j)) ∂w_j − σ(e_j) Σ_{i<j} w_i ∂w_i
///
/// The length of the remaining stick is kept as a logarithm, so that it does not underflow in a long row.
struct stick_breaking_op : row_operation<stick_breaking_op> {
    static constexpr const char* name = "stick_breaking";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, out<T, R> weights)
    {
        detail::each_column(e.shape, real, 16, [&](std::size_t at, std::size_t step, std::size_t n, std::size_t all) {
            using std::exp;
            in_double<T> rest = 0;  // log of the remaining length
            for (std::size_t j = n; j-- > 0;) {
                const T x = e.data[at + j * step];
                weights.data[at + j * step] = hidden(x) ? T(0) : exp(static_cast<T>(rest) + log_sigmoid(x));
                rest += static_cast<in_double<T>>(log_sigmoid(-x));
            }
            for (std::size_t j = n; j < all; ++j) weights.data[at + j * step] = 0;
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, in<T, R> weights, in<T, R> d_weights, adjoint<T, R> d_e)
    {
        detail::each_column(e.shape, real, 16, [&](std::size_t at, std::size_t step, std::size_t n, std::size_t) {
            using std::exp;
            in_double<T> before = 0;
            for (std::size_t j = 0; j < n; ++j) {
                const std::size_t i = at + j * step;
                const T part = exp(log_sigmoid(e.data[i])), w = weights.data[i];
                if (part == T(0)) continue;  // e.g. a masked position, even if `before` is NaN
                const T pulled = w == T(0) ? T(0) : w * d_weights.data[i];  // ∂w of a weight of 0 may be NaN
                d_e.data[i] += (1 - part) * pulled - part * static_cast<T>(before);
                before += static_cast<in_double<T>>(pulled);
            }
        });
    }

private:
    static bool hidden(auto x) { return x == -std::numeric_limits<decltype(x)>::infinity(); }
    /// log σ(x) = −log(1 + exp(−x))
    static auto log_sigmoid(auto x)
    {
        using std::exp, std::log1p;
        return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x));
    }
};
inline constexpr stick_breaking_op stick_breaking{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// From right to left, each position takes a fraction of the weight that later positions have left.
///
///     α_j = σ(e_j) Π_{k>j} (1 − σ(e_k))               Tan et al. 2025 ("Scaling Stick-Breaking Attention")
///
/// The product runs over the later visible positions. With causal{} words need no position encoding. Weights sum to at
/// most 1. Also works per dimension. Deviation: the query's own position is included if it is visible.
struct stick_breaking {
    static constexpr normalizer_traits traits{.rowwise = true};

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::stick_breaking(at.visible(scores), at.real);
    }

    kernels::tiles::stick_breaking tile_rule() const { return {}; }

    static auto parameters(auto&, auto&&) { return normalize::stick_breaking{}; }
};

}  // namespace heed::inline HEED_TARGET::normalize
