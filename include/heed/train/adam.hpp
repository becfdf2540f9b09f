// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include <heed/kernels/optimizers.hpp>
#include <heed/train/optimizer.hpp>

namespace heed::inline HEED_TARGET::train {

/// Adam (Kingma and Ba 2015).
///
///     m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²
///     θ ← θ − rate · m̂ / (√v̂ + ε),  m̂ = m / (1 − β₁ᵗ),  v̂ = v / (1 − β₂ᵗ) at step t
template <class T>
using adam = optimizer<T, kernels::adam_settings>;

/// Restricts weight decay to parameters with at least two axes, which excludes biases and the gains of layer norms.
inline bool matrices_only(const std::string&, std::size_t rank) { return rank >= 2; }

/// The settings of AdamW. As in PyTorch, the learning rate is 1e-3, the weight decay is 0.01 and all parameters decay
/// by default.
struct adamw_settings {
    double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // learning rate, β₁, β₂, ε
    double weight_decay = 0.01;                                      // λ
    /// Whether a parameter, such as "decoder.cell.W", with `rank` axes decays; if empty, all parameters decay.
    std::function<bool(const std::string& name, std::size_t rank)> decays{};

    static constexpr const char* name = "adamw";
    static constexpr std::size_t moments = 2;

    /// The update of step t of one parameter.
    template <class T>
    auto update_of(const std::string& parameter, std::size_t rank, std::size_t t, T scale) const
    {
        const double decay = !decays || decays(parameter, rank) ? weight_decay : 0;
        return kernels::adam_settings{rate, beta1, beta2, epsilon}.update(t, scale, decay);
    }
};

/// AdamW: Adam with decoupled weight decay. The decay is not part of the gradient: it does not affect the moments, and
/// a parameter with large gradients decays like any other.
///
///     m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²
///     θ ← (1 − rate · λ) θ − rate · m̂ / (√v̂ + ε)       Loshchilov and Hutter 2019, algorithm 2
///
/// As in PyTorch, and unlike in the paper, λ is multiplied by the rate itself. Rows of a table that the batch does not
/// look up do not decay.
///
///     train::adamw<float> optimizer({.rate = 3e-4, .weight_decay = 0.1, .decays = train::matrices_only});
template <class T>
using adamw = optimizer<T, adamw_settings>;

}  // namespace heed::inline HEED_TARGET::train
