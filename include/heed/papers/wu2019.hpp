// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/retention.hpp>
#include <heed/score/dynamic_convolution.hpp>

/// Wu, Fan, Baevski, Dauphin and Auli 2019, "Pay Less Attention with Lightweight and Dynamic Convolutions".
namespace heed::papers::wu2019 {

/// Dynamic convolution of one head, whose kernels of width K follow from the words at their middles.
///
///     DynamicConv(X, i) = Σ_k softmax(W x_i)_k x_{i+k−⌈(K+1)/2⌉}                                    sections 3 and 4
///
/// W is [Q,K]; `side` = score::kernel_over::past for a decoder. Retention with a decay of 1 takes scores as weights.
template <class Matrix>
auto dynamic(Matrix W, score::kernel_over side = score::kernel_over::both_sides)
{
    return attention{score::dynamic_convolution{std::move(W), side}, normalize::retention{}, combine::weighted_sum{}};
}

/// Lightweight convolution of one head, with one kernel w [K] for all positions.
///
///     LightConv(X, i) = Σ_k softmax(w)_k x_{i+k−⌈(K+1)/2⌉}                                                section 3
template <class Vector>
auto lightweight(Vector w, score::kernel_over side = score::kernel_over::both_sides)
{
    return attention{score::lightweight_convolution{std::move(w), side}, normalize::retention{},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::wu2019
