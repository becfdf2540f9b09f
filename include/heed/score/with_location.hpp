// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include <heed/core/workspace.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y[b,t,n] = Σ_i F[n,i] x[b,t+i-(r-1)/2], zeros beyond the sentence: x [B,T], F [k,r] -> [B,T,k]. k filters of odd
/// width r slide over the positions (cross-correlation, not mirrored).
///
///     ∂F[n,i] += Σ ∂y[b,t,n] x[b,t+i-(r-1)/2],  ∂x[b,t+i-(r-1)/2] += Σ_n ∂y[b,t,n] F[n,i]
struct convolve_op : operation<convolve_op> {
    static shape_of_rank<3> shape(const auto& x, const auto& filters)
    {
        if (filters.shape[1] % 2 == 0) {
            throw shape_error("convolve: the filters are " + shape_text(filters.shape) +
                              ", but their width must be odd, so that they are centered on a position");
        }
        return {x.shape[0], x.shape[1], filters.shape[0]};
    }

    template <class T>
    static void forward(in<T, 2> x, in<T, 2> filters, out<T, 3> y)
    {
        const auto [B, positions] = x.shape;
        const auto [k, r] = filters.shape;
        scratch here;
        T* const padded = here.take<T>(positions + r - 1);
        T* to = y.data;
        for (std::size_t b = 0; b < B; ++b) {
            pad(positions, r / 2, x.data + b * positions, padded);
            for (std::size_t t = 0; t < positions; ++t) {
                for (std::size_t n = 0; n < k; ++n) *to++ = kernels::dot(r, padded + t, filters.data + n * r);
            }
        }
    }

    template <class T>
    static void backward(in<T, 2> x, in<T, 2> filters, in<T, 3>, in<T, 3> d_y, adjoint<T, 2> d_x,
                         adjoint<T, 2> d_filters)
    {
        const auto [B, positions] = x.shape;
        const auto [k, r] = filters.shape;
        scratch here;
        T* const padded = here.take<T>(positions + r - 1);
        T* const d_padded = here.take<T>(positions + r - 1);
        for (std::size_t b = 0; b < B; ++b) {
            pad(positions, r / 2, x.data + b * positions, padded);
            std::fill_n(d_padded, positions + r - 1, T(0));
            const auto between = [&, k = k, r = r, length = positions](std::size_t first, std::size_t last,
                                                                       T* of_filters) {
                const T* d = d_y.data + (b * length + first) * k;
                for (std::size_t t = first; t < last; ++t) {
                    for (std::size_t n = 0; n < k; ++n, ++d) {
                        if (of_filters != nullptr) kernels::add_scaled(r, of_filters + n * r, *d, padded + t);
                        if (d_x) kernels::add_scaled(r, d_padded + t, *d, filters.data + n * r);
                    }
                }
            };
            if (d_filters) {
                kernels::add_in_blocks(positions, k * r, d_filters.data, between);
            } else {
                between(0, positions, nullptr);
            }
            if (d_x) kernels::add(positions, d_x.data + b * positions, d_padded + r / 2);
        }
    }

private:
    /// A row of x with `reach` zeros before and after it.
    template <class T>
    static void pad(std::size_t positions, std::size_t reach, const T* x, T* padded)
    {
        std::fill_n(padded, reach, T(0));
        std::copy_n(x, positions, padded + reach);
        std::fill_n(padded + reach + positions, reach, T(0));
    }
};
inline constexpr convolve_op convolve{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::score {

/// The state of location-aware attention.
template <class Features, class Weights>
struct location_state {
    Features features;  // [B,T,k] F ∗ α
    Weights weights;    // [B,T] α of the last step: new positions need it for F ∗ α

    auto map(auto&& f, const auto&... others) const
    {
        return score::location_state{f(features, others.features...), f(weights, others.weights...)};
    }
};
template <class Features, class Weights>
location_state(Features, Weights) -> location_state<Features, Weights>;

/// A score that also reads the weights of the last step, through k filters of width r (location-aware attention).
///
///     f_t = F ∗ α_{t−1}
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + U_f f_{t,j})           Chorowski et al. 2015, eq. 8, 9
///
/// U_f f is added to the keys of any base score. α_0 is zero. The state is F ∗ α instead of α, so that filters read
/// beyond the edges of a window. The width of the filters is odd. Deviations: no bias; F is not mirrored, as in every
/// toolkit. Ours: for weights per dimension, α is their mean. Throws shape_error unless given weights α_0 fit.
template <class Base, class Matrix>
struct with_location : over::score_adaptor<with_location<Base, Matrix>, Base> {
    using over::score_adaptor<with_location<Base, Matrix>, Base>::base;
    Matrix F;    // [k,r]
    Matrix U_f;  // [k,A]

    static constexpr score_traits traits =
        traits_around_score<Base>([](score_traits& own) { own.needs_all_positions = true; });

    auto init_state(const auto& memory) const
    {
        const shape_of_rank<2> shape{memory.batch(), memory.positions()};
        return looked_at(memory, constant_like(over::taped_among(memory.keys, F, U_f), shape, 0.0));
    }

    /// The state before the first step, with initial weights α_0 [B,T]; padding is zeroed.
    auto start_from(const auto& memory, const tensor auto& weights_before) const
    {
        require_shape("with_location::start_from", "the weights", shape_of(weights_before),
                      shape_of_rank<2>{memory.batch(), memory.positions()}, "one for each source position");
        return this->beside_base(looked_at(memory, over::cleared(weights_before, memory)), memory);
    }

    auto keys(const tensor auto& plain_keys, const auto& state) const  // k + U_f f
    {
        return ops::addmm(plain_keys, state.features, U_f);
    }

    auto update_state(const auto&, const tensor auto& seen, const tensor auto&, const auto&) const  // F ∗ α_t
    {
        return convolved(over::per_position(seen));
    }

    /// For a memory that has grown: new positions have no previous weight, but their neighbors do.
    auto grow(const auto& state, const auto& begun, const auto& join, const auto&) const
    {
        return convolved(join(state.weights, begun.weights));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_location{visit("base", self.base), visit("F", self.F), visit("U_f", self.U_f)};
    }

private:
    auto convolved(auto alpha) const
    {
        auto features = ops::convolve(alpha, F);
        auto beside = same_family(features, std::move(alpha));
        return score::location_state{std::move(features), std::move(beside)};
    }

    auto looked_at(const auto& memory, const tensor auto& seen) const
    {
        const auto& beside = over::taped_among(memory.keys, F, U_f, seen);
        return convolved(same_family(beside, seen));
    }
};

template <class Base, class Matrix, class Matrix2>
with_location(Base, Matrix, Matrix2) -> with_location<Base, joint_tensor<Matrix, Matrix2>>;

}  // namespace heed::inline HEED_TARGET::score
