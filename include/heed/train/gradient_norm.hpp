// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <string>
#include <unordered_set>

#include <heed/ad/lookup.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/kernels/optimizers.hpp>

/// The norm of a gradient, and clipping by it: for the optimizers of heed and for custom ones.
///
///     ‖g‖ = √Σ_i g_i² over all parameters,    g ← g · min(1, c / ‖g‖)        Pascanu et al. 2013
namespace heed::inline HEED_TARGET::train {

namespace detail {

/// Calls f(variable) for each parameter of a lifted model; once if two names refer to the same variable.
void for_each_variable(const auto& lifted, const auto& f)
{
    std::unordered_set<const void*> seen;
    for_each_parameter(lifted, [&](const std::string&, const auto& x) {
        if (seen.insert(&x.slot()).second) f(x);
    });
}

}  // namespace detail

/// ‖g‖ after `on.backward(loss)`; `lifted` is the model as lifted for this recording. Throws heed::error before
/// backward.
template <class T>
double gradient_norm(const parameterized auto& lifted, ad::tape<T>& on)
{
    on.require_gradients("train::gradient_norm");
    double squares = 0;
    detail::for_each_variable(lifted, [&](const auto& x) {
        const ad::sparse_gradient<T> rows = ad::gradient_rows(x);
        squares += rows.rows != nullptr ? kernels::squared_norm(rows.ids.size() * rows.width, rows.rows)
                                        : kernels::squared_norm(x.size(), on.gradient(x).data);
    });
    return std::sqrt(squares);
}

/// min(1, greatest / norm), and 1 if the norm is not finite. Throws heed::error unless `greatest` is at least 0.
inline double clip_factor(double norm, double greatest)
{
    if (!(greatest >= 0)) {
        throw error("a gradient cannot be clipped to a norm of " + std::to_string(greatest) +
                    "; give 0 or more, or infinity for no clipping");
    }
    return std::isfinite(norm) && norm > greatest ? greatest / norm : 1;
}

/// Clips the gradient on the tape to a norm of at most `greatest`. Returns the norm before clipping; if it is not
/// finite, the gradient is unchanged. Throws heed::error before backward. An optimizer does its own clipping during the
/// update.
template <class T>
double clip_gradient(const parameterized auto& lifted, ad::tape<T>& on, double greatest)
{
    const double norm = train::gradient_norm(lifted, on), factor = clip_factor(norm, greatest);
    if (factor != 1)
        detail::for_each_variable(lifted, [&](const auto& x) { ad::scale_gradient(x, static_cast<T>(factor)); });
    return norm;
}

}  // namespace heed::inline HEED_TARGET::train
