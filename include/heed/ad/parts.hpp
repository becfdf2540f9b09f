// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/ops/parts.hpp>

/// The taped twins of ops/parts.hpp.
namespace heed::ad {

/// y = the rows [first, last) of x: shares values and adjoints with x.
template <class T>
var<T, 2> twin(const ops::rows_between_op& operation, const var<T, 2>& x, std::size_t first, std::size_t last)
{
    const auto shape = operation.result_shape(x.shape(), first, last);
    return x.tape().piece(x, first * shape[1], shape);
}

/// y[b,t] = x[b, at[b,t]]  ->  ∂x[b, at[b,t]] += ∂y[b,t]
template <tensor X, tensor P>
auto twin(const ops::pick_op& operation, const X& x_, const P& at_)
{
    using T = element_of<X>;
    tape<T>& on = tape_of(x_, at_);
    const auto shape = operation.result_shape(shape_of(x_), shape_of(at_));
    const var<T, 2> x = on_tape(on, x_);
    const var<T, 3> at = on_tape(on, at_);
    auto [y, out] = on.template make<2>(shape, x.wanted());
    operation.compute(shape, x.shape(), x.data(), at.data(), out);
    on.record(y, [&on, x, at, y = y](const T* d_y) {
        T* d_x = on.adjoint(x);
        const std::size_t positions = y.shape()[1], n = x.shape()[1];
        for (std::size_t i = 0; i < y.size(); ++i) {
            d_x[i / positions * n + static_cast<std::size_t>(at.data()[i])] += d_y[i];
        }
    });
    return y;
}

}  // namespace heed::ad
