// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/sparse.hpp>

/// The taped twins of ops/sparse.hpp.
namespace heed::ad {

/// α = sparse weights of e  ->  ∂e_j += s_j (∂α_j − Σ_k s_k ∂α_k / Σ_k s_k), s of kernels/sparse.hpp
template <int power, class T, std::size_t R>
var<T, R> twin(const ops::sparse_weights_op<power>& operation, const var<T, R>& scores, const lengths& real)
{
    tape<T>& on = scores.tape();
    real.require(operation.name, scores.shape()[0], scores.shape()[1]);
    auto [weights, out] = on.template make<R>(scores.shape(), scores.wanted());
    const std::size_t* kept = on.keep(real.data(), real.batch());
    operation.template compute<T>(scores.shape(), kept, scores.data(), out);
    on.record(weights, [&on, scores, weights = weights, kept](const T* d_w) {
        const auto& shape = scores.shape();
        kernels::sparse_weights_backward<power>(shape[0], shape[1], ops::detail::width_of(shape), kept, weights.data(),
                                                d_w, on.adjoint(scores));
    });
    return weights;
}

/// α_j = σ(e_j + bias)  ->  ∂e_j += α_j (1 − α_j) ∂α_j, 0 behind the length
template <class T, std::size_t R>
var<T, R> twin(const ops::sigmoid_weights_op& operation, const var<T, R>& scores, const lengths& real, double bias)
{
    tape<T>& on = scores.tape();
    real.require("sigmoid_weights", scores.shape()[0], scores.shape()[1]);
    auto [weights, out] = on.template make<R>(scores.shape(), scores.wanted());
    const std::size_t* kept = on.keep(real.data(), real.batch());
    operation.template compute<T>(scores.shape(), kept, bias, scores.data(), out);
    on.record(weights, [&on, scores, weights = weights, kept](const T* d_w) {
        const auto& shape = scores.shape();
        const std::size_t width = ops::detail::width_of(shape), row = shape[1] * width;
        T* d_e = on.adjoint(scores);
        for (std::size_t b = 0; b < shape[0]; ++b) {
            simd::transform(
                kept[b] * width, d_e + b * row, [](auto d, auto a, auto g) { return d + a * (1 - a) * g; },
                static_cast<const T*>(d_e + b * row), weights.data() + b * row, d_w + b * row);
        }
    });
    return weights;
}

/// y_j = factor (e_j − c)  ->  ∂e_j += factor ∂y_j; Σ_j ∂y_j is 0 behind whoever takes no notice of c
template <tensor E, tensor S>
auto twin(const ops::scale_from_greatest_op& operation, const E& e_, const S& seen, const lengths& real, double factor)
{
    using T = element_of<E>;
    constexpr std::size_t R = rank_of<E>;
    tape<T>& on = tape_of(e_, seen);
    operation.check(shape_of(e_), shape_of(seen), real);
    const var<T, R> e = on_tape(on, e_);
    auto [y, out] = on.template make<R>(e.shape(), e.wanted());
    const std::size_t* kept = on.keep(real.data(), real.batch());
    operation.template compute<T>(e.shape(), kept, factor, e.data(), view_of(seen).data, out);
    on.record(y, [&on, e, kept, by = static_cast<T>(factor)](const T* d_y) {
        T* d_e = on.adjoint(e);
        const std::size_t width = ops::detail::width_of(e.shape()), row = e.shape()[1] * width;
        for (std::size_t b = 0; b < e.shape()[0]; ++b) {
            kernels::add_scaled(kept[b] * width, d_e + b * row, by, d_y + b * row);
        }
    });
    return y;
}

}  // namespace heed::ad
