// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/parts.hpp>

/// Lists of tensors on a tape: stacked, joined, and what a tensor is split into.
namespace heed::ad {

namespace detail {

template <class T, std::size_t R>
bool any_wanted_of(const std::vector<var<T, R>>& parts)
{
    for (const auto& part : parts) {
        if (part.wanted()) return true;
    }
    return false;
}

}  // namespace detail

/// y = (x_0, x_1, …)  ->  ∂x_i += ∂y[i]
template <class T, std::size_t R>
var<T, R + 1> twin(const ops::stack_op& operation, const std::vector<var<T, R>>& parts)
{
    const auto shape = operation.shape(parts);
    tape<T>& on = parts.front().tape();
    const bool wanted = detail::any_wanted_of(parts);
    auto [y, out] = on.template make<R + 1>(shape, wanted);
    operation.forward(parts, ops::out<T, R + 1>{out, shape});
    if (wanted) {
        const var<T, R>* kept = on.keep(parts.data(), parts.size());
        on.record(y, [&on, kept, count = parts.size()](const T* d_y) {
            for (std::size_t i = 0; i < count; ++i) {
                if (T* d_x = on.wanted_adjoint(kept[i])) kernels::add(kept[i].size(), d_x, d_y + i * kept[i].size());
            }
        });
    }
    return y;
}

/// y = [a; b; …]  ->  ∂a += ∂y[…, its columns], and so on
template <class T, std::size_t R>
var<T, R> twin(const ops::join_op& operation, const std::vector<var<T, R>>& parts)
{
    const auto shape = operation.shape(parts);
    tape<T>& on = parts.front().tape();
    const bool wanted = detail::any_wanted_of(parts);
    auto [y, out] = on.template make<R>(shape, wanted);
    operation.forward(parts, ops::out<T, R>{out, shape});
    if (wanted) {
        const var<T, R>* kept = on.keep(parts.data(), parts.size());
        on.record(y, [&on, kept, count = parts.size(), N = shape[R - 1]](const T* d_y) {
            std::size_t first = 0;
            for (std::size_t p = 0; p < count; ++p) {
                const std::size_t n = kept[p].shape()[R - 1];
                if (T* d_x = on.wanted_adjoint(kept[p])) {
                    for (std::size_t row = 0; row * n < kept[p].size(); ++row) {
                        kernels::add(n, d_x + row * n, d_y + row * N + first);
                    }
                }
                first += n;
            }
        });
    }
    return y;
}

/// y_p = x[…, p-th columns]  ->  ∂x[…, p-th columns] += ∂y_p. The parts are pieces of one value.
template <class T, std::size_t R>
std::vector<var<T, R>> twin(const ops::split_op& operation, const var<T, R>& x, std::size_t parts)
{
    tape<T>& on = x.tape();
    const auto shape = operation.shape(x.value(), parts);
    const std::size_t n = shape[R - 1], size = x.size() / parts;
    auto [whole, out] = on.template make<2>({parts, size}, x.wanted());
    for (std::size_t p = 0; p < parts; ++p)
        operation.forward(x.value(), parts, p, ops::out<T, R>{out + p * size, shape});
    on.record(whole, [&on, x, parts, n, size](const T* d_y) {
        T* d_x = on.adjoint(x);
        for (std::size_t p = 0; p < parts; ++p) {
            for (std::size_t row = 0; row * n < size; ++row) {
                kernels::add(n, d_x + (row * parts + p) * n, d_y + p * size + row * n);
            }
        }
    });
    std::vector<var<T, R>> y;
    y.reserve(parts);
    for (std::size_t p = 0; p < parts; ++p) y.push_back(on.piece(whole, p * size, shape));
    return y;
}

}  // namespace heed::ad
