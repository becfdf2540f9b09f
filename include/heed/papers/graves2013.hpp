// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/retention.hpp>
#include <heed/score/gaussian_mixture.hpp>

/// Graves 2013, "Generating Sequences With Recurrent Neural Networks".
namespace heed::papers::graves2013 {

/// The soft window of handwriting synthesis.
///
///     φ(t,u) = Σ_k α_k exp(−β_k (κ_k − u)²),  w_t = Σ_u φ(t,u) c_u                §5.1
///
/// See score::gaussian_mixture for the parameters. Retention with a decay of 1 takes scores as weights.
template <class Matrix, class Vector>
auto window(Matrix W, Vector b, Matrix W_kappa, Vector b_kappa)
{
    return attention{score::gaussian_mixture{std::move(W), std::move(b), std::move(W_kappa), std::move(b_kappa)},
                     normalize::retention{}, combine::weighted_sum{}};
}

}  // namespace heed::papers::graves2013
