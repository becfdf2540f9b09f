// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/kernels/sgd.hpp>
#include <heed/train/optimiser.hpp>

namespace heed::train {

/// Stochastic gradient descent: θ ← θ − rate · g.
///
/// Luong et al. 2015, §4.1, begin with rate 1, clip at 5 and halve the rate after each epoch from some epoch on: see
/// train::halving.
template <class T>
using sgd = optimiser<T, kernels::sgd_settings>;

}  // namespace heed::train
