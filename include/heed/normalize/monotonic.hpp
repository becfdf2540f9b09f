// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include <heed/core/family.hpp>
#include <heed/core/workspace.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/ops/rows.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// σ(e + r) and 1 − σ(e + r) of n scores, in the caller's scratch memory. Both are computed from exp(−|e + r|): neither
/// loses digits where it is small.
template <class T>
struct stops {
    T* stop;
    T* go_on;

    stops(std::size_t n, const T* e, T r, scratch& memory) : stop(memory.take<T>(n)), go_on(memory.take<T>(n))
    {
        using namespace simd;
        each_register<T>(n, [=, this](std::size_t i, std::size_t count) {
            const vec<T> x = load_first(e + i, count) + r;
            const vec<T> small = simd::exp(select(x < 0, x, -x)), great = 1 / (1 + small);
            store_first(stop + i, select(x < 0, small * great, great), count);
            store_first(go_on + i, select(x < 0, great, small * great), count);
        });
    }
};

inline void require_alignment(const char* name, const auto& e, const auto& bias, const auto& before,
                              const lengths_view& real)
{
    require_shape(name, "the bias", bias.shape, {1}, "one number for all scores");
    require_shape(name, "the alignment before", before.shape, e.shape, "the shape of the scores");
    real.require(name, e.shape[0], e.shape[1]);
}

}  // namespace detail

/// The expected alignment after a step of a scan that stops at position j with probability p_j = σ(e_j + r):
///
///     q_j = before_j + (1 − p_{j−1}) q_{j−1},  w_j = p_j q_j
///     ∂q_j = p_j ∂w_j + (1 − p_j) ∂q_{j+1},  ∂before_j += ∂q_j
///     ∂e_j += (1 − p_j) w_j (∂w_j − ∂q_{j+1}),  ∂r likewise, summed
///
/// e, before [B,T] or [B,T,D], each dimension separately; r [1]. After the real positions of a row, weights are 0;
/// where e_j is -inf, the scan does not stop. There is no division, so long rows lose no precision.
struct monotonic_op : operation<monotonic_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& e, const auto& bias, const auto& before, const lengths_view& real)
    {
        detail::require_alignment("monotonic", e, bias, before, real);
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, in<T, 1> bias, in<T, R> before, const lengths_view& real, out<T, R> weights)
    {
        const std::size_t N = detail::width_of(e.shape), row = e.shape[1] * N;
        detail::each_row(e.shape[0], 8 * row, [=, r = bias.data[0], &real](std::size_t b) {
            scratch here;
            const std::size_t n = real[b] * N, at = b * row;
            const detail::stops<T> p(n, e.data + at, r, here);
            T* const left = here.take<T>(N);  // (1 − p_{j−1}) q_{j−1}
            std::fill_n(left, N, T(0));
            for (std::size_t j = 0; j < n; j += N) {
                for (std::size_t d = 0; d < N; ++d) {
                    const T q = before.data[at + j + d] + left[d];
                    weights.data[at + j + d] = p.stop[j + d] * q;
                    left[d] = p.go_on[j + d] * q;
                }
            }
            kernels::detail::zero(weights.data + at + n, row - n);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, in<T, 1> bias, in<T, R>, const lengths_view& real, in<T, R> weights,
                         in<T, R> d_weights, adjoint<T, R> d_e, adjoint<T, 1> d_bias, adjoint<T, R> d_before)
    {
        scratch kept;
        T* const of_row = kept.take<T>(e.shape[0]);  // ∂r, summed in row order, independent of the number of threads
        const std::size_t N = detail::width_of(e.shape), row = e.shape[1] * N;
        detail::each_row(e.shape[0], 8 * row, [=, r = bias.data[0], &real](std::size_t b) {
            scratch here;
            const std::size_t n = real[b] * N, at = b * row;
            const detail::stops<T> p(n, e.data + at, r, here);
            T* const behind = here.take<T>(N);  // ∂q_{j+1}
            std::fill_n(behind, N, T(0));
            in_double<T> sum = 0;
            for (std::size_t j = n; j > 0;) {
                j -= N;
                for (std::size_t d = 0; d < N; ++d) {
                    const std::size_t i = at + j + d;
                    if (p.stop[j + d] == 0) {  // ∂w of a weight of 0 is not read
                        if (d_before) d_before.data[i] += behind[d];
                        continue;
                    }
                    const T d_w = d_weights.data[i], d_x = p.go_on[j + d] * weights.data[i] * (d_w - behind[d]);
                    if (d_e) d_e.data[i] += d_x;
                    sum += static_cast<in_double<T>>(d_x);
                    behind[d] = p.stop[j + d] * d_w + p.go_on[j + d] * behind[d];
                    if (d_before) d_before.data[i] += behind[d];
                }
            }
            of_row[b] = static_cast<T>(sum);
        });
        if (!d_bias) return;
        for (std::size_t b = 0; b < e.shape[0]; ++b) d_bias.data[0] += of_row[b];
    }
};
inline constexpr monotonic_op monotonic{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::detail {

/// α_0 = (1, 0, …, 0): the first scan begins at the first position.
auto at_first_position(const auto& blank)
{
    const auto zeros = blank(0.0);
    using T = element_of<decltype(zeros)>;
    const auto shape = shape_of(zeros);
    auto first = filled<T, rank_of<decltype(zeros)>>(shape, T(0));
    const std::size_t row = first.size() / std::max<std::size_t>(1, shape[0]);
    for (std::size_t b = 0; row > 0 && b < shape[0]; ++b) std::fill_n(first.data() + b * row, row / shape[1], T(1));
    return normalize::past_attention{same_family(zeros, std::move(first))};
}

}  // namespace heed::inline HEED_TARGET::detail

namespace heed::inline HEED_TARGET::normalize {

/// Monotonic attention: a query attends at or after the position of the previous query, never before it.
///
///     p_{i,j} = σ(e_{i,j} + r)
///     q_{i,j} = (1 − p_{i,j−1}) q_{i,j−1} + α_{i−1,j},  α_{i,j} = p_{i,j} q_{i,j}       Raffel et al. 2017, eq. 11-14
///
/// A scan begins where the last one stopped, α_0 = (1, 0, …, 0), and stops at position j with probability p_j; α is the
/// expected alignment, used in training. This recurrence takes linear time; the paper's quotient of cumulative products
/// (appendix C.1) divides by numbers that underflow. The trained model attends to one position at a time:
/// `monotonic_hard`.
///
///     normalize::monotonic{array<float, 1>{-1}}            r is learned; ad::lift makes it a parameter like any other
///
/// Initialize r below 0, and lower for longer sentences: otherwise α never leaves the first positions. Weights sum to
/// at most 1: mass that runs past the last position is lost, also for all later steps. The scan skips a masked
/// position, e = -inf. Also works per dimension. The state is α_{i−1}; gradients flow through it. The paper's noise is
/// `noisy`; its energy g vᵀ/‖v‖ tanh(…) belongs in the score.
template <class Vector>
struct monotonic {
    // Mass from before a window moves into it.
    static constexpr normalizer_traits traits{.state_decays = true, .needs_all_positions = true};
    Vector r;  // [1]

    auto start(auto&& blank) const { return detail::at_first_position(blank); }

    auto operator()(const tensor auto& scores, const auto& before, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::monotonic(at.visible(scores), r, before.history, at.real);
    }

    auto advance(const tensor auto&, const tensor auto& weights, const auto&, const auto&) const
    {
        return past_attention{weights};
    }

    static auto parameters(auto& self, auto&& visit) { return normalize::monotonic{visit("r", self.r)}; }
};

template <class Vector>
monotonic(Vector) -> monotonic<Vector>;

}  // namespace heed::inline HEED_TARGET::normalize
