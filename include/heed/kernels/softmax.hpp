// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>

#include <heed/core/compiled.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/simd/simd.hpp>

/// Softmax over the positions of each sentence of a batch, one weight per position [B,T] or per dimension [B,T,D].
///
/// `lengths` [B] counts the real positions of each row (nullptr: all T). Padding is never read and gets weight 0. A row
/// without positions, or with only scores of -inf, gets weights 0 everywhere.
///
/// A score of -inf is masked: its weight is 0 regardless of the other scores. Where a weight is 0, so is the gradient,
/// regardless of the incoming gradient. If a score is NaN or +inf, all weights that are not masked are NaN.
namespace heed::inline HEED_TARGET::kernels {

/// Names of the ways in which kernels turn a row of scores into weights. A normalizer that computes the same weights
/// declares it: `using kernel_tag = kernels::softmax_of_row;`.
struct softmax_of_row {};           // α = softmax(e)
struct temporal_softmax_of_row {};  // α = softmax(e − L), L' = log(exp L + exp e)

namespace detail {

/// The number of rows of this many elements that are worth a thread.
inline std::size_t rows_a_shard(std::size_t elements, std::size_t worth = std::size_t{1} << 15)
{
    return elements == 0 ? worth : (worth + elements - 1) / elements;
}

/// f(row) for each row, in parallel, at least `grain` rows per thread.
template <class F>
inline void each_row(std::size_t rows, std::size_t grain, F&& f)
{
    parallel_for(rows, grain, [&](std::size_t begin, std::size_t end, std::size_t) {
        const simd::without_subnormals quick;
        for (std::size_t row = begin; row < end; ++row) f(row);
    });
}

inline std::size_t length_of(const std::size_t* lengths, std::size_t row, std::size_t positions)
{
    return lengths == nullptr ? positions : lengths[row];
}

/// x + n; null stays null.
template <class T>
inline T* behind(T* x, std::size_t n)
{
    return x == nullptr ? nullptr : x + n;
}

template <class T>
inline void zero(T* y, std::size_t n)
{
    for (std::size_t i = 0; i < n; ++i) y[i] = T(0);
}

/// The maximum of the elements that are not NaN, -inf if there are none; if there is a NaN, the caller's sum is NaN
/// anyway.
template <class T>
inline T max_of(std::size_t n, const T* x)
{
    using namespace simd;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    constexpr std::size_t chains = 4;
    vec<T> tops[chains];
    for (vec<T>& top : tops) top = splat(lowest);
    std::size_t i = 0;
    for (; i + chains * lanes<T> <= n; i += chains * lanes<T>)
        unrolled<chains>([&](auto c) { tops[c] = max(load(x + i + c * lanes<T>), tops[c]); });
    vec<T> top = max(max(tops[0], tops[1]), max(tops[2], tops[3]));
    for (; i + lanes<T> <= n; i += lanes<T>) top = max(load(x + i), top);
    if (i < n) top = max(fill_behind<T>(load(x + i, n - i), n - i, lowest), top);
    return max(top);
}

/// Sums registers in blocks, and the blocks in double, so that a sum of very many small numbers stays accurate.
template <class T>
class long_sum {
public:
    HEED_SIMD_INLINE void add(simd::vec<T> x)
    {
        block_ += x;
        if (++count_ == 32) {
            total_ += static_cast<in_double<T>>(simd::sum(block_));
            block_ = simd::vec<T>{};
            count_ = 0;
        }
    }
    HEED_SIMD_INLINE T get() const { return static_cast<T>(total_ + static_cast<in_double<T>>(simd::sum(block_))); }

private:
    simd::vec<T> block_{};
    in_double<T> total_ = 0;
    std::size_t count_ = 0;
};

/// A row with no score above -inf: weights 0, or NaN where the score is NaN. y may be x.
template <class T>
inline void no_weights(std::size_t n, const T* x, T* y)
{
    for (std::size_t i = 0; i < n; ++i) y[i] = x[i] != x[i] ? x[i] : T(0);
}

/// A row with a score that is NaN or +inf: weights NaN, but 0 where the score is -inf. y may be x.
template <class T>
inline void unknown_weights(std::size_t n, const T* x, T* y)
{
    constexpr T hidden = -std::numeric_limits<T>::infinity(), unknown = std::numeric_limits<T>::quiet_NaN();
    for (std::size_t i = 0; i < n; ++i) y[i] = x[i] == hidden ? T(0) : unknown;
}

/// Is x neither infinite nor NaN?
template <class T>
inline bool is_finite(T x)
{
    return x - x == T(0);
}

/// y_j = exp(x_j - top); returns their sum. y may be x.
template <class T>
inline T exponentials(std::size_t n, const T* x, T top, T* y)
{
    using namespace simd;
    const vec<T> shift = splat(top);
    long_sum<T> sum;
    std::size_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) {
        const vec<T> e = exp(load(x + i) - shift);
        store(y + i, e);
        sum.add(e);
    }
    if (i < n) {
        const vec<T> e = fill_behind<T>(exp(load(x + i, n - i) - shift), n - i, T(0));
        store(y + i, e, n - i);
        sum.add(e);
    }
    return sum.get();
}

/// One row: y_j = exp(x_j - max x) / Σ_k exp(x_k - max x). y may be x.
template <class T>
inline void softmax_row(std::size_t n, const T* x, T* y)
{
    using namespace simd;
    const T top = max_of(n, x);
    if (top == -std::numeric_limits<T>::infinity()) return no_weights(n, x, y);
    if (top == std::numeric_limits<T>::infinity()) return unknown_weights(n, x, y);
    const T factor = T(1) / exponentials(n, x, top, y);
    if (factor != factor) {  // in place, underflow counts as masked
        for (std::size_t i = 0; i < n; ++i)
            y[i] = (x == y ? y[i] == T(0) : x[i] == -std::numeric_limits<T>::infinity()) ? T(0) : factor;
        return;
    }
    const vec<T> scale = splat(factor);
    transform(
        n, y, [scale](auto e) { return e * scale; }, y);
}

/// One row: dx_j += y_j (dy_j - Σ_k y_k dy_k), and 0 where y_j is 0, regardless of dy_j.
template <class T>
inline void softmax_row_backward(std::size_t n, const T* y, const T* dy, T* dx)
{
    using namespace simd;
    long_sum<T> sum;
    std::size_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) sum.add(load(y + i) * load(dy + i));
    if (i < n) sum.add(load(y + i, n - i) * load(dy + i, n - i));
    if (!is_finite(sum.get())) {  // 0 · NaN is NaN
        T pulled = 0;
        for (i = 0; i < n; ++i) pulled += y[i] == T(0) ? T(0) : y[i] * dy[i];
        for (i = 0; i < n; ++i) dx[i] += y[i] == T(0) ? T(0) : y[i] * (dy[i] - pulled);
        return;
    }
    const vec<T> mean = splat(sum.get());
    transform(
        n, dx, [mean](auto d, auto w, auto g) { return fma(w, g - mean, d); }, dx, y, dy);
}

/// One row: y_j = x_j - log Σ_k exp(x_k), and -inf where x_j is -inf. y may be x.
template <class T>
inline void log_softmax_row(std::size_t n, const T* x, T* y)
{
    using namespace simd;
    const T lowest = -std::numeric_limits<T>::infinity(), top = max_of(n, x);
    const vec<T> hidden = splat(lowest), shift = splat(top == lowest ? T(0) : top);
    long_sum<T> sum;
    std::size_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) sum.add(exp(load(x + i) - shift));
    if (i < n) sum.add(fill_behind<T>(exp(load(x + i, n - i) - shift), n - i, T(0)));
    const vec<T> rest = log(splat(sum.get()));
    transform(
        n, y, [=](auto e) { return select(e == hidden, hidden, (e - shift) - rest); }, x);
}

/// One row: dx_j += dy_j - exp(y_j) Σ_k dy_k, except where masked.
template <class T>
inline void log_softmax_row_backward(std::size_t n, const T* y, const T* dy, T* dx)
{
    using namespace simd;
    const vec<T> hidden = splat(-std::numeric_limits<T>::infinity());
    const auto seen = [hidden](auto log_weight, auto d) { return select(log_weight == hidden, vec<T>{}, d); };
    long_sum<T> sum;
    std::size_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) sum.add(seen(load(y + i), load(dy + i)));
    if (i < n) sum.add(fill_behind<T>(seen(load(y + i, n - i), load(dy + i, n - i)), n - i, T(0)));
    const vec<T> all = splat(sum.get());
    transform(
        n, dx, [=](auto d, auto w, auto g) { return d + seen(w, g - exp(w) * all); }, dx, y, dy);
}

/// Calls f(column, count) for each register of the columns [begin, end) of a row-major block.
template <class T, class F>
HEED_SIMD_INLINE void each_column(std::size_t begin, std::size_t end, F&& f)
{
    std::size_t d = begin;
    for (; d + simd::lanes<T> <= end; d += simd::lanes<T>) {
        f(
            d, [](const T* x) { return simd::load(x); }, [](T* y, simd::vec<T> v) { simd::store(y, v); });
    }
    if (d < end) {
        const std::size_t count = end - d;
        f(
            d, [count](const T* x) { return simd::load(x, count); },
            [count](T* y, simd::vec<T> v) { simd::store(y, v, count); });
    }
}

/// max_t x_t and Σ_t exp(x_t - max) of a register of columns, in one pass: eight rows share one correction of the sum.
template <class T>
struct column_sums {
    simd::vec<T> top = simd::splat(-std::numeric_limits<T>::infinity()), sum{};
    simd::vec<T> blocks{}, lost{};  // Σ of the previous blocks, and its rounding error

    template <class Load>
    HEED_SIMD_INLINE void add(std::size_t n, const T* x, std::size_t stride, Load&& load)
    {
        using namespace simd;
        constexpr std::size_t rows = 8;
        const vec<T> lowest = splat(-std::numeric_limits<T>::infinity());
        for (std::size_t t = 0; t < n; t += rows) {
            const std::size_t count = n - t < rows ? n - t : rows;
            vec<T> next = top;
            for (std::size_t r = 0; r < count; ++r) next = max(next, load(x + (t + r) * stride));
            // A column with only -inf so far: exp(-inf - 0), not exp(-inf - -inf).
            const vec<T> shift = select(next == lowest, vec<T>{}, next);
            const vec<T> factor = exp(top - shift);
            vec<T> part = sum * factor;
            for (std::size_t r = 0; r < count; ++r) part += exp(load(x + (t + r) * stride) - shift);
            sum = part;
            top = next;
            if (n <= numbers_of_block) continue;
            blocks *= factor;
            lost *= factor;
            if ((t + rows) % numbers_of_block == 0 || t + rows >= n) next_block();
        }
        if (n > numbers_of_block) sum = select(lost == lost, blocks + lost, blocks);
    }
    HEED_SIMD_INLINE void next_block()
    {
        const simd::vec<T> all = blocks + sum;
        lost += lost_in_sum(blocks, sum, all);
        blocks = all;
        sum = simd::vec<T>{};
    }
    HEED_SIMD_INLINE simd::vec<T> shift() const
    {
        return simd::select(top == simd::splat(-std::numeric_limits<T>::infinity()), simd::vec<T>{}, top);
    }
    /// 1 / Σ, and 0 for an empty column.
    HEED_SIMD_INLINE simd::vec<T> scale() const
    {
        return simd::select(sum == T(0), simd::vec<T>{}, simd::splat(T(1)) / sum);
    }
};

}  // namespace detail

/// α_bj = exp(e_bj) / Σ_k exp(e_bk) over the positions of row b. scores, weights [B,T]; weights may be scores.
template <class T>
void softmax(std::size_t batch, std::size_t positions, const std::size_t* lengths, const T* scores, T* weights)
{
    detail::each_row(batch, detail::rows_a_shard(positions), [=](std::size_t b) {
        const std::size_t n = detail::length_of(lengths, b, positions);
        detail::softmax_row(n, scores + b * positions, weights + b * positions);
        detail::zero(weights + b * positions + n, positions - n);
    });
}

/// Backward of α = softmax(e), α_j = exp(e_j) / Σ_k exp(e_k):   de_j += α_j (dα_j - Σ_k α_k dα_k).
template <class T>
void softmax_backward(std::size_t batch, std::size_t positions, const std::size_t* lengths, const T* weights,
                      const T* d_weights, T* d_scores)
{
    if (d_weights == nullptr || d_scores == nullptr) return;
    detail::each_row(batch, detail::rows_a_shard(positions), [=](std::size_t b) {
        const std::size_t at = b * positions;
        detail::softmax_row_backward(detail::length_of(lengths, b, positions), weights + at, d_weights + at,
                                     d_scores + at);
    });
}

/// α_btd = exp(e_btd) / Σ_k exp(e_bkd), one softmax per dimension. scores, weights [B,T,D]; weights may be scores.
template <class T>
void softmax_per_dimension(std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths,
                           const T* scores, T* weights)
{
    using namespace simd;
    if (positions == 0) return;  // pointers may be null
    detail::each_row(batch, detail::rows_a_shard(positions * width), [=](std::size_t b) {
        const std::size_t n = detail::length_of(lengths, b, positions);
        const T* x = scores + b * positions * width;
        T* y = weights + b * positions * width;
        detail::each_column<T>(0, width, [&](std::size_t d, auto load, auto store) {
            detail::column_sums<T> sums;
            sums.add(n, x + d, width, load);
            const vec<T> shift = sums.shift(), scale = sums.scale();
            const bool unknown = any(scale != scale);
            for (std::size_t t = 0; t < n; ++t) {
                const vec<T> e = load(x + t * width + d), w = exp(e - shift) * scale;
                const auto hidden = e == splat(-std::numeric_limits<T>::infinity());
                store(y + t * width + d, unknown ? select(hidden, vec<T>{}, w) : w);
            }
        });
        detail::zero(y + n * width, (positions - n) * width);
    });
}

/// Backward of α_td = exp(e_td) / Σ_k exp(e_kd):   de_td += α_td (dα_td - Σ_k α_kd dα_kd).
template <class T>
void softmax_per_dimension_backward(std::size_t batch, std::size_t positions, std::size_t width,
                                    const std::size_t* lengths, const T* weights, const T* d_weights, T* d_scores)
{
    using namespace simd;
    if (positions == 0 || d_weights == nullptr || d_scores == nullptr) return;
    detail::each_row(batch, detail::rows_a_shard(positions * width), [=](std::size_t b) {
        const std::size_t n = detail::length_of(lengths, b, positions), at = b * positions * width;
        const T *y = weights + at, *dy = d_weights + at;
        T* dx = d_scores + at;
        detail::each_column<T>(0, width, [&](std::size_t d, auto load, auto store) {
            block_sum<T> products;
            for (std::size_t i = d; i < n * width; i += width) products.add_product(load(y + i), load(dy + i));
            vec<T> mean = products.get();
            if (any(mean - mean != T(0))) {  // where a weight is 0, dy may be NaN
                const auto times = [](auto w, auto g) { return select(w == T(0), vec<T>{}, w * g); };
                mean = vec<T>{};
                for (std::size_t i = d; i < n * width; i += width) mean += times(load(y + i), load(dy + i));
                for (std::size_t i = d; i < n * width; i += width)
                    store(dx + i, load(dx + i) + times(load(y + i), load(dy + i) - mean));
                return;
            }
            for (std::size_t i = d; i < n * width; i += width) {
                store(dx + i, fma(load(y + i), load(dy + i) - mean, load(dx + i)));
            }
        });
    });
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_SOFTMAX(X, T) \
    X(T, softmax, void, softmax, (std::size_t batch, std::size_t positions, const std::size_t* lengths, const T* scores, T* weights), (batch, positions, lengths, scores, weights)) \
    X(T, softmax_backward, void, softmax_backward, (std::size_t batch, std::size_t positions, const std::size_t* lengths, const T* weights, const T* d_weights, T* d_scores), (batch, positions, lengths, weights, d_weights, d_scores)) \
    X(T, softmax_per_dimension, void, softmax_per_dimension, (std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths, const T* scores, T* weights), (batch, positions, width, lengths, scores, weights)) \
    X(T, softmax_per_dimension_backward, void, softmax_per_dimension_backward, (std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths, const T* weights, const T* d_weights, T* d_scores), (batch, positions, width, lengths, weights, d_weights, d_scores))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_SOFTMAX)

}  // namespace heed::inline HEED_TARGET::kernels
