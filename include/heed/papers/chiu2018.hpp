// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/chunkwise.hpp>
#include <heed/normalize/monotonic.hpp>
#include <heed/normalize/monotonic_hard.hpp>
#include <heed/score/additive.hpp>

/// Chiu and Raffel 2018, "Monotonic Chunkwise Attention".
namespace heed::papers::chiu2018 {

/// Monotonic chunkwise attention (MoChA) over `width` positions, to train.
///
///     β_{i,j} = Σ_{k=j}^{j+w−1} α_{i,k} exp(u_{i,j}) / Σ_{l=k−w+1}^{k} exp(u_{i,l})
///
/// α as in papers::raffel2017::monotonic, of scores e; u = s e, see normalize::chunkwise.
template <class Matrix, class Vector>
auto chunkwise(Matrix W, Matrix U, Vector v, Vector r, Vector s, std::size_t width)
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)},
                     normalize::chunkwise{width, std::move(s), normalize::monotonic{std::move(r)}},
                     combine::weighted_sum{}};
}

/// The trained model: a softmax over the `width` positions up to the one where the scan stops.
template <class Matrix, class Vector>
auto chunkwise_hard(Matrix W, Matrix U, Vector v, Vector r, Vector s, std::size_t width)
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)},
                     normalize::chunkwise{width, std::move(s), normalize::monotonic_hard{std::move(r)}},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::chiu2018
