// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <heed/ad/operation.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/parts.hpp>

/// Lists of tensors on a tape: stacked, joined, and what a tensor is split into.
namespace heed::ad {

namespace detail {

/// Each of the rows of y is the row of the first part, then that of the second, and so on  ->  ∂part += ∂y[its columns]
template <class T, std::size_t R>
void go_back_side_by_side(tape<T>& on, const T* d_y, std::span<const var<T, R>> parts, std::size_t rows)
{
    if (rows == 0) return;
    std::size_t all = 0;
    for (const var<T, R>& x : parts) all += x.size() / rows;
    for (const var<T, R>& x : parts) {
        const std::size_t n = x.size() / rows;
        if (T* d_x = on.wanted_adjoint(x)) {
            for (std::size_t row = 0; row < rows; ++row) kernels::add(n, d_x + row * n, d_y + row * all);
        }
        d_y += n;
    }
}

}  // namespace detail

/// An operation on a list of variables.
template <class Operation, class T, std::size_t R>
auto twin(const Operation& operation, const std::vector<var<T, R>>& parts)
{
    const auto shape = operation.shape(parts);
    tape<T>& on = parts.front().tape();
    bool wanted = false;
    for (const auto& x : parts) wanted |= on_tape(on, x).wanted();  // of each: see var::wanted
    auto [y, out] = on.make(shape, wanted);
    operation.forward(parts, ops::out<T, rank_of<decltype(y)>>{out, shape});
    if (wanted) {
        on.record(y, [&on, kept = detail::kept(on, std::span(parts))](const T* d_y) {
            detail::go_back_side_by_side(on, d_y, kept, Operation::rows(kept.front().shape()));
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
