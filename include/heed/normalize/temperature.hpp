// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#include <heed/kernels/rows.hpp>
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/rows.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/weigh.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y_j = factor · (e_j − c), where c is the maximum visible score of the row: e [B,T], or [B,T,D] with one c per
/// dimension -> the shape of e. Subtracting c first preserves differences of large scores, which factor · e_j would
/// round away. seen: e, with -inf where it is masked; masked scores may be NaN.
///
///     ∂e_j += factor · ∂y_j                                      no gradient for `seen` and c: Σ_j ∂y_j is 0
struct scale_from_greatest_op : operation<scale_from_greatest_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& e, const auto& seen, const lengths_view& real, double)
    {
        require_shape("scale_from_greatest", "the masked scores", seen.shape, e.shape, "the shape of the scores");
        real.require("scale_from_greatest", e.shape[0], e.shape[1]);
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, in<T, R> seen, const lengths_view& real, double factor, out<T, R> y)
    {
        constexpr T none = -std::numeric_limits<T>::infinity();
        const std::size_t width = detail::width_of(e.shape);
        detail::each_real_row(e.shape, real, [=](std::size_t at, std::size_t n, std::size_t row) {
            scratch memory;
            T* const top = memory.take<T>(width);
            std::fill_n(top, width, none);
            for (std::size_t i = at; i < at + n; i += width) {
                for (std::size_t d = 0; d < width; ++d) {
                    if (seen.data[i + d] != none && e.data[i + d] > top[d]) top[d] = e.data[i + d];
                }
            }
            for (std::size_t d = 0; d < width; ++d) top[d] = top[d] == none ? T(0) : top[d];
            for (std::size_t i = at; i < at + n; i += width) {
                simd::transform(
                    width, y.data + i, [f = static_cast<T>(factor)](auto u, auto c) { return f * (u - c); }, e.data + i,
                    static_cast<const T*>(top));
            }
            kernels::detail::zero(y.data + at + n, row - n);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, in<T, R>, const lengths_view& real, double factor, in<T, R>, in<T, R> d_y,
                         adjoint<T, R> d_e, adjoint<T, R>)
    {
        if (!d_e) return;
        detail::each_real_row(e.shape, real, [=](std::size_t at, std::size_t n, std::size_t) {
            kernels::add_scaled(n, d_e.data + at, static_cast<T>(factor), d_y.data + at);
        });
    }
};
inline constexpr scale_from_greatest_op scale_from_greatest{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Divides scores by a temperature before any normalizer: below 1 weights are sharper, above 1 flatter.
///
///     α = inner(e / τ)                        Hinton, Vinyals & Dean 2015, eq. 1, with inner = softmax
///
///     normalize::temperature{0.5}                             // over softmax
///     normalize::temperature{2.0, normalize::temporal{}}
///
/// An additive mask is added after the division. The state of an inner normalizer is that of e / τ. Throws heed::error
/// unless τ is a finite number above 0.
///
/// If the inner normalizer is invariant to shifts of the scores, e − max e is divided instead of e (not in tiles):
/// scores of 1e4 stay exact in float. Under a normalizer that keeps scores in its state, or `sigmoid`, they stay exact
/// only if τ is a power of 2; so prefer temporal outside temperature, `decayed_temporal{1, 0, temperature{τ}}`.
template <class Inner>
struct temperature {
    double tau = 1;
    Inner inner{};

    using wraps = Inner;
    static constexpr normalizer_traits traits = traits_around_normalizer<Inner>([](normalizer_traits& own) {
        own.has_window = cuts_windows<Inner>;
        own.rowwise = rowwise<Inner>;
    });

    auto operator()(const tensor auto& scores, const auto& state, const auto& at) const  // [B,T] or [B,T,D]
    {
        return weigh(inner, cooled(scores, at), state, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& state, const auto& at) const
    {
        return next_of(inner, cooled(scores, at), weights, state, at);
    }

    auto tile_rule() const
    {
        if constexpr (rowwise<Inner> && hook::tile_rule<Inner>) {
            return kernels::tiles::scaled_before(inner.tile_rule(), factor());
        } else {
            return kernels::tiles::no_rule{};
        }
    }

    auto window(const auto& at, std::size_t positions) const { return inner.window(at, positions); }

    auto inner_in_window(const auto& found) const { return normalize::temperature{tau, inner.inner_in_window(found)}; }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::temperature{self.tau, visit("inner", self.inner)};
    }

private:
    double factor() const
    {
        if (!(tau > 0) || std::isinf(tau)) {
            throw error("normalize::temperature: tau is " + std::to_string(tau) +
                        " but must be a finite number above 0; near 0 all weight goes to the maximum score");
        }
        return 1 / tau;
    }

    auto cooled(const tensor auto& scores, const auto& at) const
    {
        if constexpr (normalizer_traits_of<Inner>().shift_invariant) {
            return ops::scale_from_greatest(scores, at.visible(scores), at.real, factor());
        } else {
            return ops::scale(scores, factor());
        }
    }
};

template <class Inner = softmax>
temperature(double = 1, Inner = {}) -> temperature<Inner>;

}  // namespace heed::inline HEED_TARGET::normalize
