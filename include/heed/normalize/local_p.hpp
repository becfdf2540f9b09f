// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include <heed/attention/normalize_hooks.hpp>
#include <heed/attention/query.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/within.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/places.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/sums.hpp>

namespace heed::normalize {

/// Options of `local_p`, by name: `{.renormalise = true}`.
struct local_p_options {
    bool renormalise = false;  // weights are divided by their sum
};

}  // namespace heed::normalize

namespace heed::detail {

/// Weights times the Gaussian around p_t, divided by their sum where the options ask for it. `begin` [B]: the position
/// in its sentence of each row's first weight.
auto fall_off(const tensor auto& weights, const tensor auto& p, std::span<const std::size_t> begin, std::size_t reach,
              normalize::local_p_options options)
{
    auto around_p = ops::gaussian(weights, p, begin, static_cast<double>(reach) / 2);
    return options.renormalise ? ops::divide_by_sum(around_p) : around_p;
}

/// Zeros: every row from its first position on, in this thread's workspace.
inline std::span<const std::size_t> first_positions(const lengths_view& real)
{
    auto* const zeros = transient_family::take<std::size_t>(real.batch());
    std::fill_n(zeros, real.batch(), std::size_t{0});
    return {zeros, real.batch()};
}

/// local_p inside its window: the inner normalizer, and the Gaussian.
template <class Inner, class Centre>
struct around_centre {
    using wraps = Inner;
    const Inner& inner;
    const Centre& centre;
    window_view where;
    std::size_t reach;
    normalize::local_p_options options;

    auto operator()(const tensor auto& scores, const auto& state, const auto& at) const
    {
        return fall_off(weigh(inner, scores, state, at), centre, {where.begin, where.count.batch()}, reach, options);
    }
};

}  // namespace heed::detail

namespace heed::normalize {

/// Predictive local attention: the query itself predicts where in the sentence to look.
///
///     p_t = S sigmoid(v_pᵀ tanh(W_p h_t))                     Luong et al. 2015, eq. 9
///     α_{t,s} = inner(e_{t,s}) exp(-(s - p_t)² / 2σ²),  σ = D/2,  s within [p_t - D, p_t + D]     eq. 10
///
/// h_t is the query, or its `state` if it has several parts. S is the number of positions of the row that the query may
/// see; s counts from 0, p_t is a real number. (Jia's survey misprints v_p and W_p as v_n and W_n in its eq. 5.)
///
/// Only the window is computed, as in `local_m`, which also explains what an inner normalizer remembers.
/// As in the paper, the Gaussian is applied after normalising, so that weights sum to less than 1; with
/// `{.renormalise = true}`, the last of its members, they are divided by their sum. An inner normalizer with state sees
/// the resulting weights, Gaussian included. The gradient reaches W_p and v_p through the Gaussian alone; the choice of
/// positions in the window has no gradient, and where p_t ± D passes a position the weights jump. See
/// docs/decisions.md.
///
/// Throws heed::error if D is 0: σ would be 0.
template <class Matrix, class Vector, class Inner = softmax, class History = history::everywhere>
struct local_p {
    Matrix W_p;              // [Q,P]
    Vector v_p;              // [P]
    std::size_t reach = 10;  // D
    HEED_NO_UNIQUE_ADDRESS Inner inner{};
    HEED_NO_UNIQUE_ADDRESS History past{};
    local_p_options options{};

    using wraps = Inner;
    static constexpr bool reads_length = true, cuts = detail::may_cut<Inner, History>;

    /// p_t of each row: [B].
    auto centre(const auto& query, const lengths_view& real) const
    {
        return ops::place_in_row(ops::tanh(ops::linear(detail::state_of(query), W_p)), v_p, real);
    }

    auto focus(const auto& at, std::size_t positions) const
    {
        auto p = centre(at.query(), at.real);
        const auto where = around(p, at.real, positions);
        return detail::found_window<decltype(p)>{where, std::move(p)};
    }

    auto inside(const auto& found) const
    {
        return detail::around_centre<Inner, decltype(found.centre)>{inner, found.centre, found.where, reach, options};
    }

    auto operator()(const tensor auto& scores, const auto& memory, const auto& at) const
    {
        static_assert(!detail::within_window<decltype(at)>,
                      "heed: local_p does not know its place inside another window: make the outer one the window and "
                      "leave out the inner one");
        const auto p = centre(at.query(), at.real);
        const auto where = around(p, at.real, shape_of(scores)[1]);
        return detail::fall_off(detail::weigh_within<History>(where, inner, scores, memory, at), p,
                                detail::first_positions(at.real), reach, options);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& memory, const auto& at) const
    {
        const auto where = around(centre(at.query(), at.real), at.real, shape_of(scores)[1]);
        return detail::advance_within<History>(where, inner, scores, weights, memory, at);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::local_p{visit("W_p", self.W_p),
                                  visit("v_p", self.v_p),
                                  self.reach,
                                  visit("inner", self.inner),
                                  self.past,
                                  self.options};
    }

private:
    window_view around(const tensor auto& p, const lengths_view& real, std::size_t positions) const
    {
        if (reach == 0) throw error("local_p: the reach D is 0 but must be at least 1: the Gaussian's width is D/2");
        const double D = static_cast<double>(reach);
        const std::size_t width = reach < positions ? std::min(2 * reach + 1, positions) : positions;
        return detail::window_of_rows(real, width, [&](std::size_t b) -> stretch {
            const double place = static_cast<double>(value_of(view_of(p).data[b])), end = static_cast<double>(real[b]);
            const double at = place >= 0 ? place : 0;  // NaN: the weights become NaN
            const double first = std::ceil(std::max(0.0, at - D)), last = std::min(end - 1, std::floor(at + D));
            if (!(first <= last)) return {};
            return {static_cast<std::size_t>(first), static_cast<std::size_t>(last - first) + 1};
        });
    }
};

template <class Matrix, class Vector, class Inner = softmax, class History = history::everywhere>
local_p(Matrix, Vector, std::size_t = 10, Inner = {}, History = {}, local_p_options = {})
    -> local_p<Matrix, Vector, Inner, History>;

}  // namespace heed::normalize
