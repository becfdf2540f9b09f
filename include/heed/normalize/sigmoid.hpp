// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>

#include <heed/core/errors.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/rows.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::ops {

/// α_j = σ(e_j + bias), and 0 beyond a row's length and where e_j is -inf: e [B,T] or [B,T,D].
///
///     ∂e_j += α_j (1 − α_j) ∂α_j
struct sigmoid_weights_op : row_operation<sigmoid_weights_op> {
    static constexpr const char* name = "sigmoid_weights";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, double bias, out<T, R> weights)
    {
        detail::each_real_row(
            e.shape, real, [=, shift = static_cast<T>(bias)](std::size_t at, std::size_t n, std::size_t row) {
                simd::transform(
                    n, weights.data + at,
                    [shift](simd::vec<T> score) {
                        // 1 / (1 + exp(∞)) would depend on how exp treats infinity.
                        constexpr T none = -std::numeric_limits<T>::infinity();
                        return simd::select(score == none, simd::vec<T>{}, simd::sigmoid(score + shift));
                    },
                    e.data + at);
                kernels::detail::zero(weights.data + at + n, row - n);
            });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, double, in<T, R> weights, in<T, R> d_weights,
                         adjoint<T, R> d_e)
    {
        detail::each_real_row(e.shape, real, [=](std::size_t at, std::size_t n, std::size_t) {
            simd::transform(
                n, d_e.data + at,
                [](auto d, auto a, auto g) { return simd::select(a == T(0), d, d + a * (1 - a) * g); },
                static_cast<const T*>(d_e.data + at), weights.data + at, d_weights.data + at);
        });
    }
};
inline constexpr sigmoid_weights_op sigmoid_weights{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Independent weights: each is between 0 and 1, and their sum is unconstrained.
///
///     α_j = σ(e_j + bias)                     Ramapuram et al. 2025; there bias = −log T
///
///     normalize::sigmoid{-4}                      a fixed bias
///     normalize::sigmoid{array<float, 1>{-4}}     a learned bias; ad::lift makes it a parameter like any other
///
/// With bias 0, the default, a score of 0 has weight 1/2. A learned bias is one number per attention, and so per head
/// of a multi_head. Also works per dimension. Positions beyond a row's length, and scores of -inf, get weight and
/// gradient 0. Deviation: the bias is the same for all sentences, even where their lengths differ. Throws shape_error
/// unless a learned bias is [1].
template <class Bias = double>
struct sigmoid {
    static constexpr normalizer_traits traits{.rowwise = true};
    Bias bias{0};  // a double, or a tensor [1]

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        if constexpr (std::is_arithmetic_v<Bias>) {
            return ops::sigmoid_weights(at.visible(scores), at.real, bias);
        } else {
            require_shape("sigmoid", "the bias", shape_of(bias), shape_of_rank<1>{1}, "one number");
            return ops::sigmoid_weights(ops::add(at.visible(scores), bias), at.real, 0.0);
        }
    }

    auto tile_rule() const
    {
        if constexpr (std::is_arithmetic_v<Bias>) {
            return kernels::tiles::sigmoid{bias};
        } else {
            return kernels::tiles::with_numbers_of_heads<kernels::tiles::learned_sigmoid, Bias>{{}, bias};
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::sigmoid{detail::visit_if_tensor(visit, "bias", self.bias)};
    }
};

template <class Bias = double>
sigmoid(Bias = {}) -> sigmoid<detail::double_or_tensor<Bias>>;

}  // namespace heed::inline HEED_TARGET::normalize
