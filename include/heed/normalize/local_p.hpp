// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <heed/concepts.hpp>
#include <heed/normalize/inner.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/within.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/gaussian.hpp>
#include <heed/ops/products.hpp>

namespace heed::normalize {

/// Predictive local attention: the query itself says where in the sentence to look.
///
///     p_t = S sigmoid(v_pᵀ tanh(W_p h_t))                     Luong et al. 2015, eq. 9 · SPEC N7
///     α_{t,s} = inner(e_{t,s}) exp(-(s - p_t)² / 2σ²),  σ = D/2,  s within [p_t - D, p_t + D]     eq. 10 · SPEC N8
///
/// h_t is the query; of a query in parts its `state`. S is the number of positions of the row that the query may see;
/// s counts from 0, p_t is a real number. (Jia's survey prints v_n and W_n in eq. 5, a slip: SPEC §15.1.)
///
/// Only the window is computed, as in `local_m`, which also says what an inner normalizer remembers.
/// As in the paper the Gaussian comes after normalising, so that weights sum to less than 1 (SPEC §15.2); with
/// `renormalise` they are divided by their sum. What an inner normalizer learns of its weights is what came out here.
/// The gradient reaches W_p and v_p through the Gaussian; which positions are in the window has none, and where
/// p_t ± D passes a position the weights jump (SPEC §15.4).
///
/// Throws heed::error if D is 0: σ would be 0.
template <class Matrix, class Vector, class Inner = softmax, class History = history::everywhere>
struct local_p {
    Matrix W_p;              // [Q,P]
    Vector v_p;              // [P]
    std::size_t reach = 10;  // D
    [[no_unique_address]] Inner inner{};
    [[no_unique_address]] History past{};
    bool renormalise = false;

    static constexpr bool differentiable = detail::differentiable_inside<Inner>();
    static constexpr bool random = detail::random_inside<Inner>();
    static constexpr bool ages = detail::ages_inside<Inner>();
    static constexpr bool reads_length = true;
    static constexpr bool ignores_offset = detail::offset_ignored_inside<Inner>();

    /// p_t of each row: [B].
    auto centre(const auto& query, const lengths& real) const
    {
        if constexpr (tensor<decltype(query)>) {
            return ops::place_in_row(ops::tanh(ops::linear(query, W_p)), v_p, real);
        } else {
            return centre(query.state, real);
        }
    }

    auto focus(const auto& at, std::size_t positions) const requires(detail::may_cut<Inner, History>)
    {
        auto p = centre(at.query(), at.real);
        auto where = around(p, at.real, positions);
        return detail::found_window<local_p, decltype(p)>{std::move(where), std::move(p)};
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
        if constexpr (detail::cut_by<decltype(at), local_p>) {
            return inner.advance(scores, weights, memory, at);
        } else {
            const auto where = around(centre(at.query(), at.real), at.real, shape_of(scores)[1]);
            return detail::advance_within<History>(where, inner, scores, weights, memory, at);
        }
    }

    auto thin(const tensor auto& weights, const auto& at) const requires requires { inner.thin(weights, at); }
    {
        return inner.thin(weights, at);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::local_p{
            visit("W_p", self.W_p), visit("v_p", self.v_p), self.reach, visit("inner", self.inner), self.past,
            self.renormalise};
    }

private:
    window around(const tensor auto& p, const lengths& real, std::size_t positions) const
    {
        if (reach == 0) throw error("local_p: the reach D is 0 but must be at least 1: the Gaussian's width is D/2");
        const double D = static_cast<double>(reach);
        window w;
        std::vector<std::size_t> count;
        for (std::size_t b = 0; b < real.batch(); ++b) {
            const double place = static_cast<double>(view_of(p).data[b]), end = static_cast<double>(real[b]);
            const double at = place >= 0 ? place : 0;  // NaN: the weights will say so
            const double first = std::ceil(std::max(0.0, at - D)), last = std::min(end - 1, std::floor(at + D));
            w.begin.push_back(first <= last ? static_cast<std::size_t>(first) : 0);
            count.push_back(first <= last ? static_cast<std::size_t>(last - first) + 1 : 0);
        }
        w.count = lengths(std::move(count));
        w.width = reach < positions ? std::min(2 * reach + 1, positions) : positions;
        return w;
    }

    auto weights_of(const tensor auto& scores, const auto& memory, const auto& at) const
    {
        using moment_type = std::remove_cvref_t<decltype(at)>;
        if constexpr (detail::cut_by<moment_type, local_p>) {
            return fall_off(detail::weigh_cut(inner, scores, memory, at), at.focus.centre, at.focus.where.begin);
        } else {
            static_assert(!detail::cut_by_another<moment_type>,
                          "heed: local_p does not know its place inside another window: make the outer one the window "
                          "and leave out the inner one");
            const auto p = centre(at.query(), at.real);
            const auto where = around(p, at.real, shape_of(scores)[1]);
            return fall_off(detail::weigh_within<History>(where, inner, scores, memory, at), p,
                            std::vector<std::size_t>(at.real.batch(), 0));
        }
    }

    auto fall_off(const tensor auto& weights, const tensor auto& p, const std::vector<std::size_t>& begin) const
    {
        auto around_p = ops::gaussian(weights, p, begin, static_cast<double>(reach) / 2);
        return renormalise ? ops::divide_by_sum(around_p) : around_p;
    }
};

template <class Matrix, class Vector>
local_p(Matrix, Vector, std::size_t = 10) -> local_p<Matrix, Vector>;
template <class Matrix, class Vector, class Inner>
local_p(Matrix, Vector, std::size_t, Inner) -> local_p<Matrix, Vector, Inner>;
template <class Matrix, class Vector, class Inner, class History>
local_p(Matrix, Vector, std::size_t, Inner, History) -> local_p<Matrix, Vector, Inner, History>;
template <class Matrix, class Vector, class Inner, class History>
local_p(Matrix, Vector, std::size_t, Inner, History, bool) -> local_p<Matrix, Vector, Inner, History>;

}  // namespace heed::normalize
