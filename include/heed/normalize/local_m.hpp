// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/concepts.hpp>
#include <heed/normalize/inner.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/within.hpp>

namespace heed::normalize {

/// Monotonic local attention: target word t looks at the source words around place t.
///
///     p_t = t
///     α_t = inner(e_{t,s}),  s within [p_t - D, p_t + D]      Luong et al. 2015, §3.2 · SPEC N6
///
/// Only the window is computed: scores, weights and context cost 2D + 1 positions however long the sentence is.
/// A window at the edge of the sentence is what of it lies in the sentence (SPEC §15.3). For t > S + D the paper's is
/// empty; here p_t stops at the sentence's last word. Steps and places both count from 0 here, from 1 in the paper.
///
/// The paper's inner normalizer is softmax; here any. Of one that remembers, say what it remembers:
///
///     local_m{D, temporal{}}
///     local_m{D, temporal{}, history::in_window{}}
///
/// The first remembers all positions, whether in the window or not, and costs a whole row; the second only what lay in
/// the window, and nothing else is computed.
/// The second cuts unless the memory fades or forgets (fading_temporal, recent_temporal), which it does everywhere.
template <class Inner = softmax, class History = history::everywhere>
struct local_m {
    std::size_t reach = 10;  // D
    [[no_unique_address]] Inner inner{};
    [[no_unique_address]] History past{};

    static constexpr bool differentiable = detail::differentiable_inside<Inner>();
    static constexpr bool random = detail::random_inside<Inner>();
    static constexpr bool ages = detail::ages_inside<Inner>();
    static constexpr bool reads_length = true;
    static constexpr bool ignores_offset = detail::offset_ignored_inside<Inner>();

    /// What target word t looks at in a row of n source words.
    stretch stretch_at(std::size_t t, std::size_t n) const
    {
        return stretch::around(centre(t, n), std::min(reach, n), n);
    }

    auto focus(const auto& at, std::size_t positions) const requires(detail::may_cut<Inner, History>)
    {
        return detail::found_window<local_m>{around(at, positions), {}};
    }

    auto start(auto&& blank) const requires(detail::remembers<Inner>) { return inner.start(blank); }

    auto operator()(const tensor auto& scores, const auto& at) const requires(!detail::remembers<Inner>)
    {
        return weights_of(scores, no_state{}, at);
    }

    auto operator()(const tensor auto& scores, const auto& memory, const auto& at) const
        requires(detail::remembers<Inner>)
    {
        return weights_of(scores, memory, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& memory, const auto& at) const
        requires(detail::remembers<Inner>)
    {
        if constexpr (detail::cut_by<decltype(at), local_m>) {
            return inner.advance(scores, weights, memory, at);
        } else {
            return detail::advance_within<History>(around(at, shape_of(scores)[1]), inner, scores, weights, memory, at);
        }
    }

    auto thin(const tensor auto& weights, const auto& at) const requires requires { inner.thin(weights, at); }
    {
        return inner.thin(weights, at);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::local_m{self.reach, visit("inner", self.inner), self.past};
    }

private:
    // p_t
    static std::size_t centre(std::size_t t, std::size_t n) { return n == 0 ? 0 : std::min(t, n - 1); }

    window around(const auto& at, std::size_t positions) const
    {
        window w = window::around(at.real, std::min(reach, positions),
                                  [&at](std::size_t b) { return centre(at.step, at.real[b]); });
        w.width = std::min(w.width, positions);
        return w;
    }

    auto weights_of(const tensor auto& scores, const auto& memory, const auto& at) const
    {
        using moment_type = std::remove_cvref_t<decltype(at)>;
        if constexpr (detail::cut_by<moment_type, local_m>) {
            return detail::weigh_cut(inner, scores, memory, at);
        } else {
            static_assert(!detail::cut_by_another<moment_type>,
                          "heed: local_m does not know its place inside another window: make the outer one the window "
                          "and leave out the inner one");
            return detail::weigh_within<History>(around(at, shape_of(scores)[1]), inner, scores, memory, at);
        }
    }
};

local_m()->local_m<>;
local_m(std::size_t)->local_m<>;
template <class Inner>
local_m(std::size_t, Inner) -> local_m<Inner>;
template <class Inner, class History>
local_m(std::size_t, Inner, History) -> local_m<Inner, History>;

}  // namespace heed::normalize
