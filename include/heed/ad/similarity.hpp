// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/ops/similarity.hpp>

/// The taped twins of ops/similarity.hpp.
namespace heed::ad {

/// y = x/|x|  ->  ∂x += (∂y − y (y·∂y)) / |x|
template <class T, std::size_t R>
var<T, R> twin(const ops::unit_op& operation, const var<T, R>& x)
{
    tape<T>& on = x.tape();
    auto [y, out] = on.template make<R>(x.shape(), x.wanted());
    const std::size_t n = x.shape()[R - 1], rows = n == 0 ? 0 : x.size() / n;
    operation.compute(rows, n, x.data(), out);
    on.record(y, [&on, x, y = y, rows, n](const T* d_y) {
        T* d_x = on.adjoint(x);
        for (std::size_t r = 0; r < rows * n; r += n) {
            const auto by = ops::unit_op::inverse(n, x.data() + r);
            if (by.second == T(0)) continue;
            const T along = kernels::dot(n, y.data() + r, d_y + r);
            const auto across = [by, along](auto sum, auto u, auto d) {
                return sum + (d - u * along) * by.first * by.second;
            };
            simd::transform(n, d_x + r, across, static_cast<const T*>(d_x + r), y.data() + r, d_y + r);
        }
    });
    return y;
}

namespace detail {

/// A = 1/(1 + r), r = |x − y|  ->  ∂x += −A² (x − y)/r ∂A, ∂y the opposite; 0 where r = 0
template <class T>
void match_back(const shape_of_rank<3>& shape, std::size_t D, const std::size_t* real_x, const std::size_t* real_y,
                const T* x, const T* y, const T* A, const T* d_A, T* d_x, T* d_y)
{
    const std::size_t S = shape[1], N = shape[2];
    const auto rows = [&](std::size_t first, std::size_t last, std::size_t) {
        for (std::size_t b = first; b < last; ++b) {
            const std::size_t xs = real_x != nullptr ? real_x[b] : S, ys = real_y != nullptr ? real_y[b] : N;
            for (std::size_t s = b * S; s < b * S + xs; ++s) {
                for (std::size_t t = b * N; t < b * N + ys; ++t) {
                    const std::size_t i = s * N + t - b * N;
                    if (d_A[i] == T(0)) continue;
                    const T r = std::sqrt(kernels::squared_distance(D, x + s * D, y + t * D));
                    if (r == T(0)) continue;
                    const T slope = -A[i] * A[i] * d_A[i] / r;
                    if (slope == T(0)) continue;
                    if (d_x != nullptr) kernels::add_scaled_difference(D, d_x + s * D, slope, x + s * D, y + t * D);
                    if (d_y != nullptr) kernels::add_scaled_difference(D, d_y + t * D, slope, y + t * D, x + s * D);
                }
            }
        }
    };
    parallel_for(shape[0], 1 + 65536 / (S * N * D + 1), rows);
}

/// Computes A [B,S,T], whatever its rank R is on the tape, and records how to go back.
template <std::size_t R, class T, std::size_t Q>
var<T, R> match(tape<T>& on, const shape_of_rank<R>& shape, const shape_of_rank<3>& as, const var<T, Q>& x,
                const var<T, 3>& y, const std::size_t* real_x, const std::size_t* real_y)
{
    const std::size_t D = y.shape()[2];
    auto [A, out] = on.template make<R>(shape, x.wanted() || y.wanted());
    ops::match_matrix_op::compute(as, D, real_x, real_y, x.data(), y.data(), out);
    on.record(A, [&on, x, y, A = A, as, D, real_x, real_y](const T* d_A) {
        T* d_x = on.wanted_adjoint(x);
        T* d_y = on.wanted_adjoint(y);
        match_back(as, D, real_x, real_y, x.data(), y.data(), A.data(), d_A, d_x, d_y);
    });
    return A;
}

}  // namespace detail

/// A = 1/(1 + |x − y|) for all pairs, see detail::match_back
template <tensor X, tensor Y>
auto twin(const ops::match_matrix_op& operation, const X& x_, const Y& y_)
{
    using T = element_of<X>;
    tape<T>& on = tape_of(x_, y_);
    const auto shape = operation.result_shape(shape_of(x_), shape_of(y_));
    const var<T, 3> x = on_tape(on, x_), y = on_tape(on, y_);
    return detail::match(on, shape, shape, x, y, nullptr, nullptr);
}
template <tensor X, tensor Y>
auto twin(const ops::match_matrix_op& operation, const X& x_, const Y& y_, const lengths& real_x, const lengths& real_y)
{
    using T = element_of<X>;
    tape<T>& on = tape_of(x_, y_);
    const auto shape = operation.result_shape(shape_of(x_), shape_of(y_));
    operation.check(shape, real_x, real_y);
    const var<T, 3> x = on_tape(on, x_), y = on_tape(on, y_);
    return detail::match(on, shape, shape, x, y, on.keep(real_x.data(), shape[0]), on.keep(real_y.data(), shape[0]));
}

/// The same of one query a row.
template <tensor Q, tensor K>
auto twin(const ops::match_each_op& operation, const Q& q_, const K& k_)
{
    using T = element_of<Q>;
    tape<T>& on = tape_of(q_, k_);
    const auto shape = operation.result_shape(shape_of(q_), shape_of(k_));
    const var<T, 2> q = on_tape(on, q_);
    const var<T, 3> k = on_tape(on, k_);
    return detail::match(on, shape, {shape[0], 1, shape[1]}, q, k, nullptr, nullptr);
}

}  // namespace heed::ad
