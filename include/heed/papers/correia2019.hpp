// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/entmax.hpp>
#include <heed/score/scaled_dot.hpp>

/// Correia, Niculae and Martins 2019, "Adaptively Sparse Transformers".
namespace heed::papers::correia2019 {

/// A head that learns how sparse it is.
///
///     α-entmax(Q Kᵀ / √d) V,  α = 1 + σ(a)           section 3.2
///
/// a [1]. With a = 0, α is 1.5: Peters, Niculae, Martins 2019.
template <class Vector>
auto adaptive(Vector a)
{
    return attention{score::scaled_dot{}, normalize::entmax{std::move(a)}, combine::weighted_sum{}};
}

}  // namespace heed::papers::correia2019
