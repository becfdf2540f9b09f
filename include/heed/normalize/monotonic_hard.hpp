// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/normalize/monotonic.hpp>
#include <heed/ops/rows.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::ops {

/// w_j = 1 at the first position with e_j + r ≥ 0 at or after the one where `before` is not 0, 0 elsewhere: e, before
/// [B,T] or [B,T,D], r [1] -> the shape of e. All 0 if there is no such position, or if `before` is 0. Not
/// differentiable.
struct first_stop_op : operation<first_stop_op> {
    static constexpr ranks takes{2, 3};
    static constexpr bool differentiable = false;

    static auto shape(const auto& e, const auto& bias, const auto& before, const lengths_view& real)
    {
        detail::require_alignment("first_stop", e, bias, before, real);
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, in<T, 1> bias, in<T, R> before, const lengths_view& real, out<T, R> weights)
    {
        const T r = bias.data[0];
        detail::each_column(e.shape, real, 1, [=](std::size_t at, std::size_t step, std::size_t n, std::size_t all) {
            for (std::size_t j = 0; j < all; ++j) weights.data[at + j * step] = 0;
            std::size_t j = 0;
            while (j < n && before.data[at + j * step] == 0) ++j;
            while (j < n && !(e.data[at + j * step] + r >= 0)) ++j;
            if (j < n) weights.data[at + j * step] = 1;
        });
    }
};
inline constexpr first_stop_op first_stop{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Monotonic attention of a trained model: one position for each query, at or after the last one.
///
///     t_i = min {j ≥ t_{i−1} : p_{i,j} ≥ 1/2},  p_{i,j} = σ(e_{i,j} + r),  t_0 the first position
///     α_{i,j} = 1 if j = t_i, else 0                          Raffel et al. 2017, §2.2, deterministic
///
///     attention decode{model.score, normalize::monotonic_hard{model.normalize.r}, model.combine};
///
/// If no position stops the scan, all weights are 0, also at all later steps. The paper does not define this case; it
/// is the limit of `monotonic` for p of 0 and 1 (docs/explanation/decisions.md), and matches TensorFlow's
/// implementation, which stops only where p > 1/2. The scores get no gradient. Also works per dimension.
template <class Vector>
struct monotonic_hard {
    static constexpr normalizer_traits traits{
        .state_decays = true, .differentiable = false, .needs_all_positions = true};
    Vector r;  // [1]

    auto start(auto&& blank) const { return detail::at_first_position(blank); }

    auto operator()(const tensor auto& scores, const auto& before, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::first_stop(at.visible(scores), r, before.history, at.real);
    }

    auto advance(const tensor auto&, const tensor auto& weights, const auto&, const auto&) const
    {
        return past_attention{weights};
    }

    static auto parameters(auto& self, auto&& visit) { return normalize::monotonic_hard{visit("r", self.r)}; }
};

template <class Vector>
monotonic_hard(Vector) -> monotonic_hard<Vector>;

}  // namespace heed::inline HEED_TARGET::normalize
