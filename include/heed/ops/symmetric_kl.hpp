// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>

#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/losses.hpp>
#include <heed/ops/operation.hpp>

namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// p = softmax(a), q = softmax(b), and d = log p − log q, but 0 where both logits are -inf.
template <class T>
struct two_distributions {
    std::size_t size;
    T *p, *q, *d;

    two_distributions(std::size_t n, const T* a, const T* b, scratch& memory)
        : size(n), p(memory.take<T>(n)), q(memory.take<T>(n)), d(memory.take<T>(n))
    {
        using namespace simd;
        kernels::detail::log_softmax_row(n, a, p);
        kernels::detail::log_softmax_row(n, b, q);
        const vec<T> hidden = splat(-std::numeric_limits<T>::infinity());
        const auto difference = [hidden](auto x, auto y) {
            return select(x == hidden, select(y == hidden, vec<T>{}, x - y), x - y);
        };
        const auto probability = [](auto x) { return simd::exp(x); };
        transform(n, d, difference, static_cast<const T*>(p), static_cast<const T*>(q));
        transform(n, p, probability, static_cast<const T*>(p));
        transform(n, q, probability, static_cast<const T*>(q));
    }

    /// KL(p ‖ q) + KL(q ‖ p).
    T divergence() const { return kernels::dot(size, p, d) - kernels::dot(size, q, d); }

    /// slope += by (of (d − of·d) + p − q), for `of` p or q.
    void add_slope(T* slope, T by, const T* of) const
    {
        using namespace simd;
        const vec<T> factor = splat(by), mean = splat(kernels::dot(size, of, static_cast<const T*>(d)));
        const auto changed = [=](auto sum, auto weight, auto x, auto y, auto z) {
            return fma(factor, fma(weight, z - mean, x - y), sum);
        };
        transform(size, slope, changed, static_cast<const T*>(slope), of, static_cast<const T*>(p),
                  static_cast<const T*>(q), static_cast<const T*>(d));
    }
};

}  // namespace detail

/// J = Σ_r weight_r (KL(p_r ‖ q_r) + KL(q_r ‖ p_r)), p = softmax(a), q = softmax(b), in nats: logits a and b, [S,B,V]
/// or [B,V], -> []. Of the targets only the weights are read; rows of weight 0 (padding) are not. A word with a logit
/// of -inf in both does not count.
///
///     KL(p ‖ q) + KL(q ‖ p) = Σ_v (p_v − q_v) d_v,  d = log p − log q
///     ∂a_r += ∂J weight_r (p (d − p·d) + p − q),  ∂b_r −= ∂J weight_r (q (d − q·d) + p − q)
struct symmetric_kl_op : operation<symmetric_kl_op> {
    static constexpr ranks takes{2, 3};

    template <class T>
    static shape_of_rank<0> shape(const auto& a, const auto& b, const expected_words_view<T>& targets)
    {
        require_shape("symmetric_kl", "the second logits", b.shape, a.shape, "the shape of the first");
        constexpr std::size_t R = rank_of<decltype(a)>;
        const std::size_t rows = a.shape[R - 2] * (R == 3 ? a.shape[0] : 1);
        require_shape<1>("symmetric_kl", "the weights", {targets.weights.size()}, {rows}, "one for each row of logits");
        return {};
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> a, in<T, R> b, const expected_words_view<T>& targets, out<T, 0> J)
    {
        const std::size_t V = a.shape[R - 1], rows = targets.weights.size();
        scratch here;
        T* const of_rows = here.take<T>(rows);
        detail::each_row(rows, V, [&](std::size_t r) {
            scratch row;
            of_rows[r] = targets.weights[r] == T(0)
                             ? T(0)
                             : detail::two_distributions<T>(V, a.data + r * V, b.data + r * V, row).divergence();
        });
        *J.data = kernels::dot(rows, of_rows, targets.weights.data());
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> a, in<T, R> b, const expected_words_view<T>& targets, in<T, 0>, in<T, 0> d_J,
                         adjoint<T, R> d_a, adjoint<T, R> d_b)
    {
        const std::size_t V = a.shape[R - 1];
        detail::each_row(targets.weights.size(), V, [&](std::size_t r) {
            if (targets.weights[r] == T(0)) return;
            const T by = *d_J.data * targets.weights[r];
            scratch row;
            const detail::two_distributions<T> two(V, a.data + r * V, b.data + r * V, row);
            if (d_a) two.add_slope(d_a.data + r * V, by, two.p);
            if (d_b) two.add_slope(d_b.data + r * V, -by, two.q);
        });
    }
};
inline constexpr symmetric_kl_op symmetric_kl{};

}  // namespace heed::inline HEED_TARGET::ops
