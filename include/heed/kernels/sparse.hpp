// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>

#include <heed/core/compiled.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/softmax.hpp>

/// Weights that are mostly exactly 0: sparsemax (p = 1) and 1.5-entmax (p = 2).
///
///     α_j = max(z_j - τ, 0)^p,  z_j = (e_j - max_k e_k) / p,  τ such that Σ_j α_j = 1
///
/// τ is found exactly. Let z be sorted in descending order: z_{k+1} has a weight if and only if the k scores above it
/// leave some, f_k(z_{k+1}) < 1 with f_k(x) = Σ_{i<=k} (z_i - x)^p. Once that fails, f_k(τ) = 1 is a linear or a
/// quadratic equation. Since z_1 = 0, only scores with z_j > -1 matter; a heap yields them in order until enough are
/// found.
///
/// Lengths as in softmax.hpp. -inf gets weight 0 regardless of the other scores; a NaN among the scores propagates to
/// the weights.
namespace heed::inline HEED_TARGET::kernels {

namespace detail {

/// τ for n scores with maximum `top`; `heap` has room for n.
template <int power, class T>
double sparse_threshold(std::size_t n, const T* scores, double top, T* heap)
{
    static_assert(power == 1 || power == 2);
    std::size_t left = 0;
    for (std::size_t j = 0; j < n; ++j) {
        if (static_cast<double>(value_of(scores[j])) - top > -power) heap[left++] = scores[j];
    }
    if (left == 0) return std::numeric_limits<double>::quiet_NaN();  // the maximum is NaN or infinite
    std::make_heap(heap, heap + left);
    double count = 0, sum = 0, squares = 0;  // over the z_i with a weight; in double, since float would lose Σ α = 1
    for (; left > 0; --left) {
        const double z = (static_cast<double>(value_of(heap[0])) - top) / power;
        const double used = power == 1 ? sum - count * z : squares - 2 * z * sum + count * z * z;
        if (used >= 1) break;
        count += 1;
        sum += z;
        squares += z * z;
        std::pop_heap(heap, heap + left);
    }
    if constexpr (power == 1) {
        return (sum - 1) / count;
    } else {
        const double mean = sum / count, spread = squares - sum * mean;
        return mean - std::sqrt(std::max(1 - spread, 0.0) / count);
    }
}

/// Turns n contiguous scores into weights. y may be x.
template <int power, class T>
void sparse_column(std::size_t n, const T* x, T* y, T* heap)
{
    const T greatest = max_of(n, x);
    if (greatest == -std::numeric_limits<T>::infinity()) return no_weights(n, x, y);
    const double top = static_cast<double>(value_of(greatest)), tau = sparse_threshold<power>(n, x, top, heap);
    if (tau != tau) return unknown_weights(n, x, y);
    const auto above = [=](std::size_t j) { return (static_cast<double>(value_of(x[j])) - top) / power - tau; };
    [[maybe_unused]] double pulled = 0, all = 0;  // for dual numbers: α' = (diag(s) - s sᵀ / Σ s) e', s as below
    if constexpr (dual_element<T>) {
        for (std::size_t j = 0; j < n; ++j) {
            const double s = above(j) <= 0 ? 0 : power == 1 ? 1 : above(j);
            if (s != 0) pulled += s * static_cast<double>(x[j].slope);
            all += s;
        }
    }
    for (std::size_t j = 0; j < n; ++j) {
        const double over = above(j);
        const T weight = over <= 0 ? T(0) : static_cast<T>(power == 1 ? over : over * over);
        if constexpr (dual_element<T>) {
            const double slope = (static_cast<double>(x[j].slope) - pulled / all) * (power == 1 ? 1 : over);
            y[j] = over <= 0 ? T(0) : T(weight.value, static_cast<plain_number<T>>(slope));
        } else {
            y[j] = weight;
        }
    }
}

/// ∂α/∂e = diag(s) - s sᵀ / Σ s with this s: 1 or 0 for sparsemax, √α for 1.5-entmax.
template <int power, class V>
HEED_SIMD_INLINE V sparse_slope(V weight)
{
    if constexpr (power == 1) {
        return simd::select(weight > 0, V{} + 1, V{});
    } else {
        return simd::sqrt(weight);
    }
}

/// column(n, x, y, room for n) for the real scores of each row, for each of `width` columns separately. y may be x.
/// scores, weights [B,T,width]; weights may be scores.
template <class T>
void each_column_of_scores(std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths,
                           const T* scores, T* weights, const auto& column)
{
    constexpr std::size_t line = 64 / sizeof(T);  // columns that share a cache line are copied out together
    const std::size_t grain = rows_a_shard(positions * width, std::size_t{1} << 12);
    parallel_for(batch, grain, [&](std::size_t begin, std::size_t end, std::size_t) {
        scratch memory;
        T* heap = memory.take<T>(positions);
        T* columns = width == 1 ? nullptr : memory.take<T>(line * positions);
        for (std::size_t b = begin; b < end; ++b) {
            const std::size_t n = length_of(lengths, b, positions);
            const T* x = scores + b * positions * width;
            T* y = weights + b * positions * width;
            if (width == 1) {
                column(n, x, y, heap);
            } else {
                for (std::size_t d = 0; d < width; d += line) {
                    const std::size_t count = std::min(line, width - d);
                    for (std::size_t t = 0; t < n; ++t) {
                        for (std::size_t c = 0; c < count; ++c) columns[c * n + t] = x[t * width + d + c];
                    }
                    for (std::size_t c = 0; c < count; ++c) column(n, columns + c * n, columns + c * n, heap);
                    for (std::size_t t = 0; t < n; ++t) {
                        for (std::size_t c = 0; c < count; ++c) y[t * width + d + c] = columns[c * n + t];
                    }
                }
            }
            zero(y + n * width, (positions - n) * width);
        }
    });
}

/// softmax over the top k of n scores, and those equal to the k-th. y may be x.
template <class T>
void greatest_column(std::size_t n, std::size_t k, const T* x, T* y, T* heap)
{
    const T top = max_of(n, x);
    if (top == -std::numeric_limits<T>::infinity()) return no_weights(n, x, y);
    using std::exp;
    T least = -std::numeric_limits<T>::infinity();
    bool known = top < std::numeric_limits<T>::infinity();
    for (std::size_t j = 0; j < n; ++j) known = known && x[j] == x[j];  // no NaN
    if (!known) return unknown_weights(n, x, y);
    if (k < n) {
        std::copy_n(x, n, heap);
        std::nth_element(heap, heap + (k - 1), heap + n, std::greater<T>());
        least = heap[k - 1];
    }
    T sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
        y[j] = x[j] < least ? T(0) : exp(x[j] - top);
        sum += y[j];
    }
    for (std::size_t j = 0; j < n; ++j) y[j] /= sum;
}

}  // namespace detail

/// Sparse weights over the positions of each row, for each of `width` columns separately: see each_column_of_scores.
template <int power, class T>
void sparse_weights(std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths,
                    const T* scores, T* weights)
{
    detail::each_column_of_scores(batch, positions, width, lengths, scores, weights,
                                  [](auto... in) { detail::sparse_column<power>(in...); });
}

/// softmax over the top k scores of each row.
template <class T>
void greatest_weights(std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths,
                      std::size_t k, const T* scores, T* weights)
{
    detail::each_column_of_scores(
        batch, positions, width, lengths, scores, weights,
        [k](std::size_t n, const T* x, T* y, T* heap) { detail::greatest_column(n, k, x, y, heap); });
}

/// Backward of α = sparse weights of e, with s of sparse_slope:   de_j += s_j (dα_j - Σ_k s_k dα_k / Σ_k s_k).
/// Where the weight is 0, so is the gradient.
template <int power, class T>
void sparse_weights_backward(std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths,
                             const T* weights, const T* d_weights, T* d_scores)
{
    using namespace simd;
    if (d_weights == nullptr || d_scores == nullptr) return;
    const auto slope = [](auto weight) { return detail::sparse_slope<power>(weight); };
    parallel_for(batch, detail::rows_a_shard(positions * width), [=](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t b = begin; b < end; ++b) {
            const std::size_t n = detail::length_of(lengths, b, positions), at = b * positions * width;
            const T *y = weights + at, *dy = d_weights + at;
            T* dx = d_scores + at;
            if (width == 1) {
                detail::long_sum<T> all, pulled;
                const auto add = [&](auto s, auto g) { all.add(s), pulled.add(s * g); };
                std::size_t i = 0;
                for (; i + lanes<T> <= n; i += lanes<T>) add(slope(load(y + i)), load(dy + i));
                if (i < n) add(slope(load(y + i, n - i)), load(dy + i, n - i));
                if (all.get() == T(0)) continue;
                if (!detail::is_finite(pulled.get())) {  // where a weight is 0, dy may be NaN
                    T sum = 0;
                    const auto each = [&](const auto& use) {
                        for (i = 0; i < n; ++i)
                            if (y[i] != T(0)) use(detail::sparse_slope<power>(splat(y[i]))[0]);
                    };
                    each([&](T s) { sum += s * dy[i]; });
                    each([&, m = sum / all.get()](T s) { dx[i] += s * (dy[i] - m); });
                    continue;
                }
                const vec<T> mean = splat(pulled.get() / all.get());
                transform(
                    n, dx, [&](auto d, auto w, auto g) { return fma(slope(w), g - mean, d); }, dx, y, dy);
            } else {
                detail::each_column<T>(0, width, [&](std::size_t d, auto read, auto write) {
                    block_sum<T> slopes, products;
                    for (std::size_t i = d; i < n * width; i += width) {
                        const vec<T> w = read(y + i), s = slope(w);
                        slopes.add(s);
                        products.add_product(s, select(w == T(0), vec<T>{}, read(dy + i)));
                    }
                    const vec<T> all = slopes.get(), pulled = products.get();
                    const vec<T> mean = select(all == T(0), vec<T>{}, pulled / all);
                    for (std::size_t i = d; i < n * width; i += width) {
                        const vec<T> w = read(y + i), sum = read(dx + i);
                        write(dx + i, select(w == T(0), sum, fma(slope(w), read(dy + i) - mean, sum)));
                    }
                });
            }
        }
    });
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_SPARSE(X, T) \
    X(T, sparse_weights_1, void, sparse_weights<1>, (std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths, const T* scores, T* weights), (batch, positions, width, lengths, scores, weights)) \
    X(T, sparse_weights_2, void, sparse_weights<2>, (std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths, const T* scores, T* weights), (batch, positions, width, lengths, scores, weights)) \
    X(T, greatest_weights, void, greatest_weights, (std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths, std::size_t k, const T* scores, T* weights), (batch, positions, width, lengths, k, scores, weights)) \
    X(T, sparse_weights_backward_1, void, sparse_weights_backward<1>, (std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths, const T* weights, const T* d_weights, T* d_scores), (batch, positions, width, lengths, weights, d_weights, d_scores)) \
    X(T, sparse_weights_backward_2, void, sparse_weights_backward<2>, (std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths, const T* weights, const T* d_weights, T* d_scores), (batch, positions, width, lengths, weights, d_weights, d_scores))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_SPARSE)

}  // namespace heed::inline HEED_TARGET::kernels
