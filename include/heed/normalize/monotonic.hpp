// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include <heed/attention/concepts.hpp>
#include <heed/core/family.hpp>
#include <heed/ops/monotonic.hpp>

namespace heed::normalize {

/// The alignment after the last step, of `monotonic` and `monotonic_hard`.
template <class Alignment>
struct last_alignment {
    Alignment alignment;  // α_{i−1}, the shape of the scores

    /// The same with f applied to the tensor (and to the matching ones of `others`).
    auto map(auto&& f, const auto&... others) const
    {
        return normalize::last_alignment{f(alignment, others.alignment...)};
    }
};
template <class Alignment>
last_alignment(Alignment) -> last_alignment<Alignment>;

}  // namespace heed::normalize

namespace heed::detail {

/// α_0 = (1, 0, …, 0): the first scan begins at the first position.
auto at_first_position(const auto& blank)
{
    const auto zeros = blank(0.0);
    using T = element_of<decltype(zeros)>;
    const auto shape = shape_of(zeros);
    auto first = filled<T, rank_of<decltype(zeros)>>(shape, T(0));
    std::size_t row = 1;
    for (std::size_t axis = 1; axis < shape.size(); ++axis) row *= shape[axis];
    for (std::size_t b = 0; row > 0 && b < shape[0]; ++b) std::fill_n(first.data() + b * row, row / shape[1], T(1));
    return normalize::last_alignment{same_family(zeros, std::move(first))};
}

}  // namespace heed::detail

namespace heed::normalize {

/// Monotonic attention: a query looks at or behind the position of the query before, and never back.
///
///     p_{i,j} = σ(e_{i,j} + r)
///     q_{i,j} = (1 − p_{i,j−1}) q_{i,j−1} + α_{i−1,j},  α_{i,j} = p_{i,j} q_{i,j}       Raffel et al. 2017, eq. 11-14
///
/// A scan begins where the last one stopped, α_0 = (1, 0, …, 0), and stops at position j with probability p_j; α is the
/// expected value of where it stops, with which the model trains. Computed by this recurrence in linear time; the
/// paper's quotient of cumulative products (appendix C.1) divides by numbers that underflow. The trained model looks at
/// one position at a time: `monotonic_hard`.
///
///     normalize::monotonic{array<float, 1>{-1}}            r learns; ad::lift makes it a parameter, as any other
///
/// r is below 0 at first, the more the longer sentences are: otherwise α never leaves the first positions. Weights sum
/// to at most 1: what runs past the last position is lost, for all later steps, too. A masked position, e = -inf, is
/// passed by. Works per dimension, too, each of them with its own scan.
///
/// The state is α_{i−1}; gradients flow through it. In training the paper adds noise to e, so that p is near 0 or 1 in
/// the end: `noisy`. Its energy g vᵀ/‖v‖ tanh(…) is a matter of the score; r is here so that any score will do.
template <class Vector>
struct monotonic {
    static constexpr bool ages = true;  // what lies before a window walks into it
    Vector r;                           // [1]

    auto start(auto&& blank) const { return detail::at_first_position(blank); }

    auto operator()(const tensor auto& scores, const auto& before, const auto& at) const  // [B,T] or [B,T,D], the same
    {
        return ops::monotonic(at.visible(scores), r, before.alignment, at.real);
    }

    auto advance(const tensor auto&, const tensor auto& weights, const auto&, const auto&) const
    {
        return normalize::last_alignment{weights};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto r = visit("r", self.r);
        return monotonic<decltype(r)>{std::move(r)};
    }
};

template <class Vector>
monotonic(Vector) -> monotonic<Vector>;

}  // namespace heed::normalize
