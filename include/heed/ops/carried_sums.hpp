// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>

/// Sums over all positions so far, F_j = Σ_{l≤j} x_l, stored as two columns of the keys, (1, −F_j): an inner product
/// with (F_i, 1) is then F_i − F_j, the sum over the positions between.
namespace heed::inline HEED_TARGET::ops {

/// y[b,t] = (1, −Σ_{l≤t} x[b,l]): x [B,T,1] -> [B,T,2]. Summed in double.      ∂x[b,l] −= Σ_{t≥l} ∂y[b,t,1]
struct carried_sums_op : operation<carried_sums_op> {
    static shape_of_rank<3> shape(const auto& x)
    {
        require_shape("carried_sums", "x", x.shape, {x.shape[0], x.shape[1], 1}, "one number for each position");
        return {x.shape[0], x.shape[1], 2};
    }

    template <class T>
    static void forward(in<T, 3> x, out<T, 3> y)
    {
        const std::size_t positions = x.shape[1];
        for (std::size_t b = 0; b < x.shape[0]; ++b) {
            in_double<T> sum = 0;
            for (std::size_t i = b * positions; i < (b + 1) * positions; ++i) {
                sum += static_cast<in_double<T>>(x.data[i]);
                y.data[2 * i] = 1;
                y.data[2 * i + 1] = static_cast<T>(-sum);
            }
        }
    }

    template <class T>
    static void backward(in<T, 3> x, in<T, 3>, in<T, 3> d_y, adjoint<T, 3> d_x)
    {
        const std::size_t positions = x.shape[1];
        for (std::size_t b = 0; b < x.shape[0]; ++b) {
            in_double<T> sum = 0;
            for (std::size_t i = (b + 1) * positions; i-- > b * positions;) {
                sum += static_cast<in_double<T>>(d_y.data[2 * i + 1]);
                d_x.data[i] -= static_cast<T>(sum);
            }
        }
    }
};
inline constexpr carried_sums_op carried_sums{};

/// y = keys [B,t,N], with y[b,t,1] = keys[b,t,1] + before[b,T−1,1]: the sums of new keys continue those of the previous
/// keys [B,T,N].
///
///     ∂keys += ∂y,  ∂before[b,T−1,1] += Σ_t ∂y[b,t,1]
struct carry_sums_op : operation<carry_sums_op> {
    static shape_of_rank<3> shape(const auto& keys, const auto& before)
    {
        const auto k = keys.shape, f = before.shape;
        require_shape("carry_sums", "the keys before", f, {k[0], f[1], k[2]}, "the rows and width of ", k);
        require_columns(k);
        return k;
    }
    /// Throws shape_error unless keys have the two columns of sums.
    static void require_columns(const shape_of_rank<3>& keys)
    {
        if (keys[2] < 2)
            detail::refuse("a score with gates: keys ", keys,
                           " have no columns of sums; use the memory that this mechanism made");
    }

    template <class T>
    static void forward(in<T, 3> keys, in<T, 3> before, out<T, 3> y)
    {
        const auto [B, n, N] = keys.shape;
        std::copy_n(keys.data, keys.size(), y.data);
        for (std::size_t b = 0; b < B && before.shape[1] > 0; ++b) {
            const T last = before.data[((b + 1) * before.shape[1] - 1) * N + 1];
            for (std::size_t t = 0; t < n; ++t) y.data[(b * n + t) * N + 1] += last;
        }
    }

    template <class T>
    static void backward(in<T, 3> keys, in<T, 3> before, in<T, 3>, in<T, 3> d_y, adjoint<T, 3> d_keys,
                         adjoint<T, 3> d_before)
    {
        const auto [B, n, N] = keys.shape;
        if (d_keys) kernels::add(keys.size(), d_keys.data, d_y.data);
        for (std::size_t b = 0; d_before && b < B && before.shape[1] > 0; ++b) {
            T& last = d_before.data[((b + 1) * before.shape[1] - 1) * N + 1];
            for (std::size_t t = 0; t < n; ++t) last += d_y.data[(b * n + t) * N + 1];
        }
    }
};
inline constexpr carry_sums_op carry_sums{};

/// y[r,s] = (F_p, 1), p = min(first + s, real[r] − 1): keys [B,T,N] -> [R,S,2]. The sums at the queries' own positions,
/// for the keys of row r, or of row sentence[r] if `sentence` is not empty. (0, 1) where a row has no position.
///
///     ∂keys[r,p,1] −= ∂y[r,s,0]
struct carried_to_op : operation<carried_to_op> {
    static shape_of_rank<3> shape(const auto& keys, std::span<const std::size_t> sentence, const lengths_view& real,
                                  std::size_t, std::size_t queries)
    {
        carry_sums_op::require_columns(keys.shape);
        // With zero rows, the list of sentences is empty even if rows share sentences.
        const std::size_t rows = real.batch() == 0 || !sentence.empty() ? real.batch() : keys.shape[0];
        real.require("a score with gates", rows, keys.shape[1]);
        if (!sentence.empty()) {
            require_shape<1>("carried_to", "the list of sentences", {sentence.size()}, {rows}, "one for each row");
        }
        for (const std::size_t b : sentence) {
            if (b >= keys.shape[0])
                detail::refuse("carried_to: sentence ", b, " of keys ", keys.shape, "; sentences count from 0");
        }
        return {rows, queries, 2};
    }

    template <class T>
    static void forward(in<T, 3> keys, std::span<const std::size_t> sentence, const lengths_view& real,
                        std::size_t first, std::size_t, out<T, 3> y)
    {
        for (std::size_t i = 0, n = y.shape[0] * y.shape[1]; i < n; ++i) y.data[2 * i] = 0, y.data[2 * i + 1] = 1;
        each(y.shape, keys.shape, sentence, real, first,
             [&](std::size_t query, std::size_t key) { y.data[query] = -keys.data[key]; });
    }

    template <class T>
    static void backward(in<T, 3> keys, std::span<const std::size_t> sentence, const lengths_view& real,
                         std::size_t first, std::size_t, in<T, 3> y, in<T, 3> d_y, adjoint<T, 3> d_keys)
    {
        each(y.shape, keys.shape, sentence, real, first,
             [&](std::size_t query, std::size_t key) { d_keys.data[key] -= d_y.data[query]; });
    }

private:
    /// f(offset of F_p in y, its offset in the keys) for each query of a row with positions.
    static void each(const shape_of_rank<3>& y, const shape_of_rank<3>& keys, std::span<const std::size_t> sentence,
                     const lengths_view& real, std::size_t first, const auto& f)
    {
        for (std::size_t r = 0; r < y[0]; ++r) {
            if (real[r] == 0) continue;
            const std::size_t b = sentence.empty() ? r : sentence[r];
            for (std::size_t s = 0; s < y[1]; ++s)
                f((r * y[1] + s) * 2, (b * keys[1] + std::min(first + s, real[r] - 1)) * keys[2] + 1);
        }
    }
};
inline constexpr carried_to_op carried_to{};

}  // namespace heed::inline HEED_TARGET::ops
