// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/gaussian.hpp>

/// The taped twins of ops/gaussian.hpp.
namespace heed::ad {

/// p = S sigmoid(a), a = v · z  ->  ∂a = p (1 − p/S) ∂p,  ∂z += ∂a v,  ∂v += Σ_b ∂a_b z_b
template <tensor Z, tensor V>
auto twin(const ops::place_in_row_op& operation, const Z& z_, const V& v_, const lengths& real)
{
    using T = element_of<Z>;
    tape<T>& on = tape_of(z_, v_);
    operation.check(shape_of(z_), shape_of(v_), real);
    const var<T, 2> z = on_tape(on, z_);
    const var<T, 1> v = on_tape(on, v_);
    const std::size_t rows = z.shape()[0], n = v.size();
    auto [p, out] = on.template make<1>({rows}, z.wanted() || v.wanted());
    const std::size_t* kept = on.keep(real.data(), rows);
    operation.template compute<T>(rows, n, kept, z.data(), v.data(), out);
    on.record(p, [&on, z, v, p = p, kept, rows, n](const T* d_p) {
        T* d_z = on.wanted_adjoint(z);
        T* d_v = on.wanted_adjoint(v);
        for (std::size_t b = 0; b < rows; ++b) {
            if (kept[b] == 0) continue;  // nowhere to look
            const T d_a = p.data()[b] * (1 - p.data()[b] / static_cast<T>(kept[b])) * d_p[b];
            if (d_z != nullptr) kernels::add_scaled(n, d_z + b * n, d_a, v.data());
            if (d_v != nullptr) kernels::add_scaled(n, d_v, d_a, z.data() + b * n);
        }
    });
    return p;
}

/// y = x f, f = exp(−(s − p)² / 2σ²)  ->  ∂x += f ∂y,  ∂p += Σ_s y ∂y (s − p) / σ²
template <tensor X, tensor P>
auto twin(const ops::gaussian_op& operation, const X& x_, const P& p_, const std::vector<std::size_t>& begin,
          double sigma_)
{
    using T = element_of<X>;
    constexpr std::size_t R = rank_of<X>;
    tape<T>& on = tape_of(x_, p_);
    operation.check(shape_of(x_), shape_of(p_), begin);
    const var<T, R> x = on_tape(on, x_);
    const var<T, 1> p = on_tape(on, p_);
    const T sigma = static_cast<T>(sigma_);
    const std::size_t rows = x.shape()[0], positions = x.shape()[1];
    std::size_t width = 1;  // numbers a position has
    if constexpr (R == 3) width = x.shape()[2];
    auto [y, out] = on.template make<R>(x.shape(), x.wanted() || p.wanted());
    const std::size_t* kept = on.keep(begin.data(), rows);
    T* f = on.memory().template array_of<T>(rows * positions);
    operation.factors(rows, positions, p.data(), kept, sigma, f);
    operation.template compute<T>(rows * positions, width, f, x.data(), out);
    on.record(y, [&on, x, p, y = y, kept, f, sigma, rows, positions, width](const T* d_y) {
        T* d_x = on.wanted_adjoint(x);
        T* d_p = on.wanted_adjoint(p);
        for (std::size_t i = 0; i < rows * positions; ++i) {
            if (d_x != nullptr) kernels::add_scaled(width, d_x + i * width, f[i], d_y + i * width);
            if (d_p == nullptr) continue;
            const std::size_t b = i / positions;
            const T off = static_cast<T>(kept[b] + i % positions) - p.data()[b];
            T sum = 0;
            for (std::size_t k = i * width; k < (i + 1) * width; ++k) sum += y.data()[k] * d_y[k];
            d_p[b] += sum * off / (sigma * sigma);
        }
    });
    return y;
}

/// y = x / Σ x  ->  ∂x_j += (∂y_j − Σ_k y_k ∂y_k) / Σ x
template <class T, std::size_t R>
var<T, R> twin(const ops::divide_by_sum_op& operation, const var<T, R>& x)
{
    tape<T>& on = x.tape();
    const auto shape = operation.as_columns(x.shape());
    auto [y, out] = on.template make<R>(x.shape(), x.wanted());
    T* sums = on.memory().template array_of<T>(shape[0] * shape[2]);
    operation.template compute<T>(shape, x.data(), sums, out);
    on.record(y, [&on, x, y = y, sums, shape](const T* d_y) {
        T* d_x = on.adjoint(x);
        const auto [B, positions, N] = shape;
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t n = 0; n < N; ++n) {
                const T sum = sums[b * N + n];
                if (sum == T(0)) continue;
                T mean = 0;
                for (std::size_t j = 0; j < positions; ++j) {
                    const std::size_t i = (b * positions + j) * N + n;
                    mean += y.data()[i] * d_y[i];
                }
                for (std::size_t j = 0; j < positions; ++j) {
                    const std::size_t i = (b * positions + j) * N + n;
                    d_x[i] += (d_y[i] - mean) / sum;
                }
            }
        }
    });
    return y;
}

}  // namespace heed::ad
