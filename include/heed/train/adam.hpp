// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/kernels/optimizers.hpp>
#include <heed/train/optimiser.hpp>

namespace heed::train {

/// Adam (Kingma and Ba 2015).
///
///     m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²
///     θ ← θ − rate · m̂ / (√v̂ + ε)
template <class T>
using adam = optimiser<T, kernels::adam_settings>;

}  // namespace heed::train
