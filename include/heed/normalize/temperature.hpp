// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <string>

#include <heed/attention/normalize_hooks.hpp>
#include <heed/kernels/tiles/rules.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/sparse.hpp>

namespace heed::normalize {

/// Any normalizer, applied to scores divided by a temperature: below 1 weights are sharper, above 1 flatter.
///
///     α = inner(e / τ)                        Hinton, Vinyals & Dean 2015, eq. 1, with inner = softmax
///
///     normalize::temperature{0.5}                             // over softmax
///     normalize::temperature{2.0, normalize::temporal{}}
///
/// An additive mask is added after the division, as after any modulation. τ must be above 0, else heed::error. An inner
/// normalizer with state remembers e / τ.
///
/// If the inner normalizer ignores a constant that is added to all scores, e − max e is divided instead of e: scores of
/// 1e4 stay exact in float. Under a normalizer that remembers scores, or `sigmoid`, they stay exact only if τ is a
/// power of 2; so prefer temporal over temperature, `fading_temporal{1, 0, temperature{τ}}`, to the other way round.
/// Many queries in tiles divide e as it is, too.
template <class Inner>
struct temperature {
    double tau = 1;
    Inner inner{};

    using wraps = Inner;
    static constexpr bool cuts = cuts_windows<Inner>, row_by_row = heed::row_by_row<Inner>;

    auto operator()(const tensor auto& scores, const auto& past, const auto& at) const
    {
        return weigh(inner, cooled(scores, at), past, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& past, const auto& at) const
    {
        return next_of(inner, cooled(scores, at), weights, past, at);
    }

    auto by_tiles() const
    {
        if constexpr (row_by_row && hook::by_tiles<Inner>) {
            return kernels::tiles::scaled_before(inner.by_tiles(), factor());
        } else {
            return kernels::tiles::no_rule{};
        }
    }

    auto focus(const auto& at, std::size_t positions) const { return inner.focus(at, positions); }

    auto inside(const auto& found) const
    {
        using there = std::remove_cvref_t<decltype(inner.inside(found))>;
        return normalize::temperature<there>{tau, inner.inside(found)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::temperature{self.tau, visit("inner", self.inner)};
    }

private:
    double factor() const
    {
        if (!(tau > 0) || std::isinf(tau)) {
            throw error("normalize::temperature: tau is " + std::to_string(tau) +
                        " but must be a finite number above 0; near 0 all weight goes to the greatest score");
        }
        return 1 / tau;
    }

    auto cooled(const tensor auto& scores, const auto& at) const
    {
        if constexpr (detail::ignores_offset_of<Inner>()) {
            return ops::scale_from_greatest(scores, at.visible(scores), at.real, factor());
        } else {
            return ops::scale(scores, factor());
        }
    }
};

template <class Inner = softmax>
temperature(double = 1, Inner = {}) -> temperature<Inner>;

}  // namespace heed::normalize
