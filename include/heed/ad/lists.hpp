// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <heed/ad/operation.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/shape.hpp>

/// Lists of tensors on a tape: stacked, concatenated, and split.
namespace heed::inline HEED_TARGET::ad {

/// Each row of y is the row of the first part, followed by that of the second, and so on  ->  ∂part += ∂y[its columns]
template <class Operation, class T, std::size_t R>
auto twin(const Operation& operation, const std::vector<var<T, R>>& parts)
{
    const auto shape = operation.shape(parts);
    tape<T>& on = parts.front().tape();
    bool wanted = false;
    for (const auto& x : parts) wanted |= on_tape(on, x).wanted();  // called for every part, as var::wanted requires
    auto [y, out] = on.make(shape, wanted);
    operation.forward(parts, ops::out<T, rank_of<decltype(y)>>{out, shape});
    if (wanted) {
        on.record(y, [&on, kept = detail::kept(on, std::span(parts))](const T* d_y) {
            const std::size_t rows = Operation::rows(kept.front().shape());
            if (rows == 0) return;
            std::size_t all = 0;
            for (const var<T, R>& x : kept) all += x.size() / rows;
            for (const var<T, R>& x : kept) {
                const std::size_t n = x.size() / rows;
                if (T* d_x = on.wanted_adjoint(x)) {
                    for (std::size_t row = 0; row < rows; ++row) kernels::add(n, d_x + row * n, d_y + row * all);
                }
                d_y += n;
            }
        });
    }
    return y;
}

/// y_p = x[…, p-th columns]  ->  ∂x[…, p-th columns] += ∂y_p. The parts are slices of a single value.
template <class T, std::size_t R>
std::vector<var<T, R>> twin(const ops::split_heads_op& operation, const var<T, R>& x, std::size_t parts)
{
    tape<T>& on = x.tape();
    const auto shape = operation.shape(x.value(), parts);
    const std::size_t n = shape[R - 1], size = x.size() / parts;
    auto [whole, out] = on.template make<2>({parts, size}, x.wanted());
    for (std::size_t p = 0; p < parts; ++p)
        ops::slice_columns.forward(x.value(), p * n, (p + 1) * n, ops::out<T, R>{out + p * size, shape});
    on.record(whole, [&on, x, parts, n, size, shape](const T* d_y) {
        const ops::adjoint<T, R> d_x{{on.adjoint(x), x.shape()}};
        for (std::size_t p = 0; p < parts; ++p) {
            const ops::in<T, R> d_part{d_y + p * size, shape};
            ops::slice_columns.backward(x.value(), p * n, (p + 1) * n, d_part, d_part, d_x);
        }
    });
    std::vector<var<T, R>> y;
    y.reserve(parts);
    for (std::size_t p = 0; p < parts; ++p) y.push_back(on.piece(whole, p * size, shape));
    return y;
}

}  // namespace heed::inline HEED_TARGET::ad
