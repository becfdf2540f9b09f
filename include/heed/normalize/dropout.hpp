// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <heed/attention/normalize_hooks.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/sampling.hpp>

namespace heed::normalize {

/// Options of `dropout`, by name: `{.at_inference = true}`.
struct dropout_options {
    bool renormalise = false;   // the weights that are left get the sum of all
    bool at_inference = false;  // also without a tape
};

/// Dropout on the weights of any normalizer: the context leaves out some of the positions, at random.
///
///     c = combine(α'),  α'_j = k_j α_j / (1 − p),  k_j = 0 with probability p, else 1     Srivastava et al. 2014, §4
///     .renormalise:     α'_j = k_j α_j · Σ_i α_i / Σ_i k_i α_i, so that Σ α' = Σ α
///
///     normalize::dropout{0.1, seed}                            // over softmax
///     normalize::dropout{0.1, seed, normalize::temporal{}}
///     normalize::dropout{0.1, seed, normalize::softmax{}, {.renormalise = true}}
///
/// The weights that are returned, remembered and passed to coverage are those before dropout: they have the sum that
/// the inner normalizer gives them. Only the context is affected. If a row's weights are all dropped, its context is 0.
///
/// Like all dropout in heed it takes effect on the tape only: the same model without a tape, at inference, drops
/// nothing unless `options.at_inference` is set (Monte Carlo dropout, Gal & Ghahramani 2016). Which weights are dropped
/// depends on (seed, step, row, position, dimension) alone: use a new seed for each batch. p outside [0,1) throws
/// heed::error.
template <class Inner>
struct dropout {
    double p = 0;
    std::uint64_t seed = 1;
    Inner inner{};
    dropout_options options{};

    using wraps = Inner;
    static constexpr bool random = true, cuts = cuts_windows<Inner>;

    auto operator()(const tensor auto& scores, const auto& past, const auto& at) const
    {
        return weigh(inner, scores, past, at);
    }

    auto focus(const auto& at, std::size_t positions) const { return inner.focus(at, positions); }

    auto inside(const auto& found) const
    {
        using there = std::remove_cvref_t<decltype(inner.inside(found))>;
        return normalize::dropout<there>{p, seed, inner.inside(found), options};
    }

    template <tensor Weights>
    Weights thin(const Weights& weights, const auto& at) const
    {
        if (!(p >= 0 && p < 1)) {
            throw error("normalize::dropout: p is " + std::to_string(p) +
                        " but must be at least 0 and below 1: the probability that a weight is dropped");
        }
        return dropped(heed::thinned(inner, weights, at), at);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::dropout{self.p, self.seed, visit("inner", self.inner), self.options};
    }

private:
    template <tensor Weights>
    Weights dropped(Weights weights, const auto& at) const
    {
        if (p == 0 || (plain_tensor<Weights> && !options.at_inference)) return weights;
        return ops::thin(weights, at.real, p, ops::stream_of(seed, at.step, ops::chance::weights), options.renormalise);
    }
};

template <class Inner = softmax>
dropout(double = 0, std::uint64_t = 1, Inner = {}, dropout_options = {}) -> dropout<Inner>;

}  // namespace heed::normalize
