// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include <heed/kernels/optimizers.hpp>
#include <heed/train/optimizer.hpp>

namespace heed::inline HEED_TARGET::train {

/// Stochastic gradient descent: θ ← θ − rate · g. Luong et al. 2015, §4.1: rate 1, clip 5, and train::halving.
template <class T>
using sgd = optimizer<T, kernels::sgd_settings>;

/// The settings of stochastic gradient descent with momentum. Momentum 0 gives gradient descent with weight decay.
struct momentum_settings {
    double rate = 1e-3;       // learning rate
    double momentum = 0.9;    // μ
    double weight_decay = 0;  // λ
    bool nesterov = false;
    /// Whether a parameter, such as "decoder.cell.W", with `rank` axes decays; if empty, all parameters decay.
    std::function<bool(const std::string& name, std::size_t rank)> decays{};

    static constexpr const char* name = "sgd_with_momentum";
    static constexpr std::size_t moments = 1;

    /// The update of one parameter.
    template <class T>
    kernels::detail::momentum_update<T> update_of(const std::string& parameter, std::size_t rank, std::size_t,
                                                  T scale) const
    {
        const double decay = !decays || decays(parameter, rank) ? weight_decay : 0;
        return {static_cast<T>(rate), static_cast<T>(momentum), static_cast<T>(decay), scale, nesterov};
    }
};

/// Stochastic gradient descent with momentum, optionally Nesterov's, and weight decay.
///
///     g ← g + λ θ,  m ← μ m + g
///     θ ← θ − rate · m,  or with `nesterov`  θ ← θ − rate · (g + μ m)      Sutskever et al. 2013
///
/// As in PyTorch's SGD with dampening 0, and unlike in the paper, the rate is not part of m. The decay is added to the
/// gradient after clipping. Rows of a table that the batch does not look up neither move nor decay.
///
///     train::sgd_with_momentum<float> optimizer({.rate = 0.1, .weight_decay = 1e-4, .nesterov = true});
template <class T>
using sgd_with_momentum = optimizer<T, momentum_settings>;

}  // namespace heed::inline HEED_TARGET::train
