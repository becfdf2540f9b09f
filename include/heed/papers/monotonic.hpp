// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Monotonic alignments: graves2013, raffel2017, chiu2018.

#include <cstddef>
#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/chunkwise.hpp>
#include <heed/normalize/monotonic.hpp>
#include <heed/normalize/monotonic_hard.hpp>
#include <heed/normalize/retention.hpp>
#include <heed/score/additive.hpp>
#include <heed/score/gaussian_mixture.hpp>

/// Graves 2013, "Generating Sequences With Recurrent Neural Networks".
namespace heed::inline HEED_TARGET::papers::graves2013 {

/// The soft window of handwriting synthesis: score::gaussian_mixture. Retention without decay uses scores as weights.
///
///     φ(t,u) = Σ_k α_k exp(−β_k (κ_k − u)²),  w_t = Σ_u φ(t,u) c_u                §5.1
auto window(auto W, auto b, auto W_kappa, auto b_kappa)  // [Q,2K], [2K], [Q,K], [K]
{
    return attention{score::gaussian_mixture{std::move(W), std::move(b), std::move(W_kappa), std::move(b_kappa)},
                     normalize::retention{}, combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::graves2013

/// Raffel, Luong, Liu, Weiss and Eck 2017, "Online and Linear-Time Attention by Enforcing Monotonic Alignments".
namespace heed::inline HEED_TARGET::papers::raffel2017 {

/// Monotonic attention, for training.
///
///     p_{i,j} = σ(vᵀ tanh(W s_{i−1} + U h_j) + r),  α_{i,j} = p_{i,j} ((1 − p_{i,j−1}) α_{i,j−1} / p_{i,j−1} +
///     α_{i−1,j})
///
/// Eq. 10; computed without the quotient. The paper normalizes v and gives it a gain; its noise is normalize::noisy.
auto monotonic(auto W, auto U, auto v, auto r)  // [Q,A], [D,A], [A], [1]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::monotonic{std::move(r)},
                     combine::weighted_sum{}};
}

/// Monotonic attention for inference: it reads one position at a time.
///
///     t_i = min {j ≥ t_{i−1} : p_{i,j} ≥ 1/2},  α_{i,j} = 1 if j = t_i, else 0           §2.2
auto monotonic_hard(auto W, auto U, auto v, auto r)  // [Q,A], [D,A], [A], [1]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::monotonic_hard{std::move(r)},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::raffel2017

/// Chiu and Raffel 2018, "Monotonic Chunkwise Attention".
namespace heed::inline HEED_TARGET::papers::chiu2018 {

/// Monotonic chunkwise attention (MoChA) over `width` positions, for training; α as in papers::raffel2017::monotonic.
///
///     β_{i,j} = Σ_{k=j}^{j+w−1} α_{i,k} exp(u_{i,j}) / Σ_{l=k−w+1}^{k} exp(u_{i,l}),  u = s e, see
///     normalize::chunkwise
auto chunkwise(auto W, auto U, auto v, auto r, auto s, std::size_t width)  // [Q,A], [D,A], [A], [1], [1]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)},
                     normalize::chunkwise{width, std::move(s), normalize::monotonic{std::move(r)}},
                     combine::weighted_sum{}};
}

/// MoChA for inference: a softmax over the `width` positions up to t_i, at which the scan stops.
///
///     β_{i,j} = exp(u_{i,j}) / Σ_{l=t_i−w+1}^{t_i} exp(u_{i,l}),  t_i − w < j ≤ t_i
auto chunkwise_hard(auto W, auto U, auto v, auto r, auto s, std::size_t width)  // [Q,A], [D,A], [A], [1], [1]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)},
                     normalize::chunkwise{width, std::move(s), normalize::monotonic_hard{std::move(r)}},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::chiu2018
