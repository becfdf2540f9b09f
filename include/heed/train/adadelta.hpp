// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/kernels/optimizers.hpp>
#include <heed/train/optimizer.hpp>

namespace heed::inline HEED_TARGET::train {

/// AdaDelta (Zeiler 2012), which has no learning rate; Bahdanau et al. 2015 train with ε = 10⁻⁶ and ρ = 0.95.
///
///     G ← ρ G + (1 − ρ) g²,  Δ ← √(D + ε) / √(G + ε) · g,  D ← ρ D + (1 − ρ) Δ²,  θ ← θ − Δ
template <class T>
using adadelta = optimizer<T, kernels::adadelta_settings>;

}  // namespace heed::inline HEED_TARGET::train
