// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/gate.hpp>

/// The taped twins of ops/gate.hpp.
namespace heed::ad {

/// y[b,:] = g[b] x[b,:]  ->  ∂x[b,:] += g[b] ∂y[b,:],  ∂g[b] += ∂y[b,:] · x[b,:]
template <tensor X, tensor G>
auto twin(const ops::multiply_rows_op& operation, const X& x_, const G& g_)
{
    using T = element_of<X>;
    tape<T>& on = tape_of(x_, g_);
    operation.check(shape_of(x_), shape_of(g_));
    const var<T, 2> x = on_tape(on, x_), g = on_tape(on, g_);
    auto [y, out] = on.template make<2>(x.shape(), x.wanted() || g.wanted());
    operation.compute(x.shape()[0], x.shape()[1], x.data(), g.data(), out);
    on.record(y, [&on, x, g](const T* d_y) {
        T* d_x = on.wanted_adjoint(x);
        T* d_g = on.wanted_adjoint(g);
        const auto [B, n] = x.shape();
        for (std::size_t b = 0; b < B; ++b) {
            if (d_x != nullptr) kernels::add_scaled(n, d_x + b * n, g.data()[b], d_y + b * n);
            if (d_g != nullptr) d_g[b] += kernels::dot(n, d_y + b * n, x.data() + b * n);
        }
    });
    return y;
}

/// y = x where the row is wanted, 0 elsewhere  ->  ∂x += ∂y there
template <class T>
var<T, 2> twin(const ops::keep_rows_op& operation, const var<T, 2>& x, const std::vector<std::uint8_t>& rows)
{
    tape<T>& on = x.tape();
    operation.check(x.shape(), rows);
    auto [y, out] = on.template make<2>(x.shape(), x.wanted());
    const std::size_t n = x.shape()[1];
    std::fill_n(out, y.size(), T(0));
    for (std::size_t b = 0; b < rows.size(); ++b) {
        if (rows[b] != 0) std::copy_n(x.data() + b * n, n, out + b * n);
    }
    if (x.wanted()) {
        const std::uint8_t* kept = on.keep(rows.data(), rows.size());
        on.record(y, [&on, x, kept, n](const T* d_y) {
            T* d_x = on.adjoint(x);
            for (std::size_t b = 0; b < x.shape()[0]; ++b) {
                if (kept[b] != 0) kernels::add(n, d_x + b * n, d_y + b * n);
            }
        });
    }
    return y;
}

}  // namespace heed::ad
