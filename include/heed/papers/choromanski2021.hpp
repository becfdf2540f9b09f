// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/nn/init.hpp>
#include <heed/normalize/ratio.hpp>
#include <heed/score/kernel.hpp>

/// Choromanski et al. 2021, "Rethinking Attention with Performers".
namespace heed::papers::choromanski2021 {

/// Softmax attention by positive random features, in linear time (FAVOR+): Ω [D,m] is drawn from N(0, 1).
///
///     φ(x) = exp(Ωᵀx' − ‖x'‖² / 2) / √m,  x' = x / D^¼           lemma 1
///
/// Deviation: the columns of Ω are independent unless the caller makes them orthogonal (section 2.4).
template <class Matrix>
auto performer(Matrix Omega)
{
    return attention{score::kernel{score::positive_random{std::move(Omega)}}, normalize::ratio{},
                     combine::weighted_sum{}};
}

/// The same with new features.
template <class T>
auto make_performer(random_source& random, std::size_t width, std::size_t features)
{
    return choromanski2021::performer(nn::gaussian<T>(random, width, features, 1));
}

}  // namespace heed::papers::choromanski2021
