// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <heed/core/compiled.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/simd.hpp>

/// Cross-entropy of a softmax over the vocabulary against one target word per row, and its gradient in the same call.
///
///     loss = log Σ_i exp(x_i) - Σ_i q_i x_i,    dx = (softmax(x) - q) · weight
///     q = (1 - ε) onehot(target) + ε / V                                             ε: label smoothing, 0 for none
///
/// Rows of weight 0 (padding) are never read, cost nothing and have gradient 0.
namespace heed::inline HEED_TARGET::kernels {

namespace detail {

/// The loss of one row; if `gradient` is not null (it may be x), also dx.
template <class T>
inline T cross_entropy_row(std::size_t n, const T* x, std::size_t target, T weight, T smoothing, T* gradient)
{
    using namespace simd;
    const T top = max_of(n, x);
    const T at_target = x[target] - top;
    const vec<T> shift = splat(top);
    long_sum<T> exps, logits;
    each_column<T>(0, n, [&](std::size_t i, auto get, auto put) {
        const std::size_t count = n - i < lanes<T> ? n - i : lanes<T>;
        const vec<T> shifted = get(x + i) - shift;
        vec<T> e = exp(shifted);
        if (count < lanes<T>) e = fill_behind<T>(e, count, T(0));
        exps.add(e);
        if (smoothing != T(0)) logits.add(count < lanes<T> ? fill_behind<T>(shifted, count, T(0)) : shifted);
        if (gradient != nullptr) put(gradient + i, e);
    });
    const T sum = exps.get(), share = smoothing / static_cast<T>(n);
    if (gradient != nullptr) {
        const vec<T> scale = splat(weight / sum), uniform = splat(weight * share);
        transform(
            n, gradient, [=](auto e) { return fma(e, scale, -uniform); }, gradient);
        gradient[target] -= weight * (T(1) - smoothing);
    }
    T expected = at_target;
    if (smoothing != T(0)) expected = (T(1) - smoothing) * at_target + share * logits.get();
    using std::log;  // dual numbers have a separate one
    return log(sum) - expected;
}

template <class T, class Index>
inline in_double<T> cross_entropy(std::size_t rows, std::size_t vocabulary, const T* logits, const Index* targets,
                                  const T* weights, T smoothing, T* losses, T* gradient, const T* bias = nullptr)
{
    each_row(rows, rows_a_shard(vocabulary), [=](std::size_t r) {
        const T weight = weights == nullptr ? T(1) : weights[r];
        T* const dx = behind(gradient, r * vocabulary);
        if (weight == T(0)) {
            losses[r] = T(0);
            if (dx != nullptr) zero(dx, vocabulary);
            return;
        }
        if (bias != nullptr) {  // the row is loaded into the cache here; a separate pass would go through memory
            simd::transform(
                vocabulary, dx, [](auto x, auto b) { return x + b; }, logits + r * vocabulary, bias);
        }
        losses[r] = cross_entropy_row(vocabulary, logits + r * vocabulary, static_cast<std::size_t>(targets[r]), weight,
                                      smoothing, dx);
    });
    in_double<T> total = 0;
    for (std::size_t r = 0; r < rows; ++r) {
        total += static_cast<in_double<T>>(losses[r]) *
                 (weights == nullptr ? in_double<T>(1) : static_cast<in_double<T>>(weights[r]));
    }
    return total;
}

}  // namespace detail

/// Writes each row's loss in nats (losses [R], not weighted; 0 if the weight is 0). Returns Σ_r weight_r loss_r.
/// logits [R,V], biases included; targets [R], each below V; weights [R], or nullptr: 1 for every row.
template <class T, class Index>
in_double<T> cross_entropy(std::size_t rows, std::size_t vocabulary, const T* logits, const Index* targets,
                           const T* weights, T smoothing, T* losses)
{
    return detail::cross_entropy(rows, vocabulary, logits, targets, weights, smoothing, losses,
                                 static_cast<T*>(nullptr));
}

/// Like `cross_entropy`, but replaces the logits with the gradient of Σ_r weight_r loss_r. If a bias [V] is given, the
/// logits do not include it.
template <class T, class Index>
in_double<T> cross_entropy_in_place(std::size_t rows, std::size_t vocabulary, T* logits, const Index* targets,
                                    const T* weights, T smoothing, T* losses, const T* bias = nullptr)
{
    return detail::cross_entropy(rows, vocabulary, logits, targets, weights, smoothing, losses, logits, bias);
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_CROSS_ENTROPY(X, T) \
    X(T, cross_entropy, in_double<T>, cross_entropy, (std::size_t rows, std::size_t vocabulary, const T* logits, const std::uint32_t* targets, const T* weights, T smoothing, T* losses), (rows, vocabulary, logits, targets, weights, smoothing, losses)) \
    X(T, cross_entropy_in_place, in_double<T>, cross_entropy_in_place, (std::size_t rows, std::size_t vocabulary, T* logits, const std::uint32_t* targets, const T* weights, T smoothing, T* losses, const T* bias), (rows, vocabulary, logits, targets, weights, smoothing, losses, bias))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_CROSS_ENTROPY)

}  // namespace heed::inline HEED_TARGET::kernels
