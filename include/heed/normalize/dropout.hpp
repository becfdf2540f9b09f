// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <heed/attention/weigh.hpp>
#include <heed/normalize/inner.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/sampling.hpp>

namespace heed::normalize {

/// Dropout on the weights of any normalizer: the context leaves out some of the positions, at random.
///
///     c = combine(α'),  α'_j = k_j α_j / (1 − p),  k_j = 0 with probability p, else 1     Srivastava et al. 2014, §4
///     renormalise:      α'_j = k_j α_j · Σ_i α_i / Σ_i k_i α_i, so that Σ α' = Σ α
///
///     normalize::dropout{0.1, seed}                            // over softmax
///     normalize::dropout{0.1, seed, normalize::temporal{}}
///
/// The weights that are returned, remembered and passed to coverage are those before dropout: they have the sum that
/// the inner normalizer gives them. Only the context is affected. If a row's weights are all dropped, its context is 0.
///
/// Like all dropout in heed it takes effect on the tape only: the same model without a tape, at inference, drops
/// nothing unless `at_inference` is set (Monte Carlo dropout, Gal & Ghahramani 2016). Which weights are dropped depends
/// on (seed, step, row, position, dimension) alone: use a new seed for each batch. p outside [0,1) throws heed::error.
template <class Inner>
struct dropout {
    double p = 0;
    std::uint64_t seed = 1;
    Inner inner{};
    bool renormalise = false;
    bool at_inference = false;

    static constexpr bool differentiable = detail::differentiable_inside<Inner>();
    static constexpr bool random = true;
    static constexpr bool ages = detail::ages_inside<Inner>();
    static constexpr bool reads_length = detail::reads_length_inside<Inner>();
    static constexpr bool ignores_offset = detail::offset_ignored_inside<Inner>();

    auto start(auto&& blank) const requires detail::remembers<Inner> { return inner.start(blank); }

    auto operator()(const tensor auto& scores, const auto& past, const auto& at) const
    {
        return weigh(inner, scores, past, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& past,
                 const auto& at) const requires detail::remembers<Inner>
    {
        return next_of(inner, scores, weights, past, at);
    }

    auto focus(const auto& at, std::size_t positions) const requires requires { inner.focus(at, positions); }
    {
        return inner.focus(at, positions);
    }

    auto inside(const auto& found) const requires requires { inner.inside(found); }
    {
        using there = std::remove_cvref_t<decltype(inner.inside(found))>;
        return normalize::dropout<there>{p, seed, inner.inside(found), renormalise, at_inference};
    }

    template <tensor Weights>
    Weights thin(const Weights& weights, const auto& at) const
    {
        if (!(p >= 0 && p < 1)) {
            throw error("normalize::dropout: p is " + std::to_string(p) +
                        " but must be at least 0 and below 1: the probability that a weight is dropped");
        }
        if constexpr (requires { inner.thin(weights, at); }) {
            return thinned(inner.thin(weights, at), at);
        } else {
            return thinned(weights, at);
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::dropout{self.p, self.seed, visit("inner", self.inner), self.renormalise, self.at_inference};
    }

private:
    template <tensor Weights>
    Weights thinned(const Weights& weights, const auto& at) const
    {
        if (p == 0 || (plain_tensor<Weights> && !at_inference)) return weights;
        return ops::thin(weights, at.real, p, ops::stream_of(seed, at.step, ops::chance::weights), renormalise);
    }
};

template <class Inner = softmax>
dropout(double = 0, std::uint64_t = 1, Inner = {}, bool = false, bool = false) -> dropout<Inner>;

}  // namespace heed::normalize
