// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <heed/attention/concepts.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/sampling.hpp>
#include <heed/ops/softmax.hpp>

namespace heed::normalize {

/// Hard attention that learns through a soft one: one position, drawn from softmax(e), and the gradient of a softmax
/// near it.
///
///     g_j = −log(−log u_j),  u_j uniform in (0,1)
///     forward:  α = one-hot(argmax_j (e_j + g_j))                Jang, Gu & Poole 2017, eq. 1
///     backward: that of softmax((e + g) / τ)                     eq. 2; section 2.2, "straight-through"
///
/// With `straight_through = false` the forward weights are the soft ones, which are differentiable. The gradient of the
/// hard ones is biased, unlike that of `hard`, but has a lower variance.
///
/// The noise depends on (seed, step, row, position, dimension) alone: use a new seed for each batch. `greedy` adds no
/// noise: for a trained model. τ must be above 0, else heed::error. Masks and empty rows as with softmax. No deviation.
struct gumbel {
    std::uint64_t seed = 1;
    double tau = 1;
    bool straight_through = true;
    bool greedy = false;

    static constexpr bool ignores_offset = true;
    static constexpr bool differentiable = false;  // because of the default
    static constexpr bool random = true;

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D], the same
    {
        if (!(tau > 0) || std::isinf(tau)) {
            throw error("normalize::gumbel: tau is " + std::to_string(tau) + " but must be a finite number above 0");
        }
        const auto noisy = ops::perturb(at.visible(scores), at.real, ops::stream_of(seed, at.step, ops::chance::noise),
                                        greedy ? 0.0 : 1.0);
        auto soft = ops::softmax(ops::scale(noisy, 1 / tau), at.real);
        if (!straight_through) return soft;
        return ops::straight_through(ops::greatest(noisy, at.real), soft);
    }

    static auto parameters(auto& self, auto&&)
    {
        return normalize::gumbel{self.seed, self.tau, self.straight_through, self.greedy};
    }
};

}  // namespace heed::normalize
