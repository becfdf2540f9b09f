// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/monotonic.hpp>
#include <heed/normalize/monotonic_hard.hpp>
#include <heed/score/additive.hpp>

/// Raffel, Luong, Liu, Weiss and Eck 2017, "Online and Linear-Time Attention by Enforcing Monotonic Alignments".
namespace heed::papers::raffel2017 {

/// Monotonic attention, to train.
///
///     p_{i,j} = σ(vᵀ tanh(W s_{i−1} + U h_j) + r),  α_{i,j} = p_{i,j} ((1 − p_{i,j−1}) α_{i,j−1} / p_{i,j−1} +
///     α_{i−1,j})
///
/// Eq. 10; computed without the quotient. The paper's v is divided by its norm and has a gain of its own, which v
/// itself can be here; its noise is normalize::noisy.
template <class Matrix, class Vector>
auto monotonic(Matrix W, Matrix U, Vector v, Vector r)
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::monotonic{std::move(r)},
                     combine::weighted_sum{}};
}

/// The trained model, which looks at one position at a time: §2.2.
template <class Matrix, class Vector>
auto monotonic_hard(Matrix W, Matrix U, Vector v, Vector r)
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::monotonic_hard{std::move(r)},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::raffel2017
