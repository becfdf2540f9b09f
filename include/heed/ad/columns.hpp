// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heed/ad/tape.hpp>
#include <heed/ops/columns.hpp>

/// The taped twin of ops/columns.hpp.
namespace heed::ad {

/// y[..., i] = x[..., columns[i]]  ->  ∂x[..., columns[i]] += ∂y[..., i]
template <class T, std::size_t R>
var<T, R> twin(const ops::columns_of_op& operation, const var<T, R>& x, const std::vector<std::uint32_t>& columns)
{
    tape<T>& on = x.tape();
    auto [y, out] = on.template make<R>(operation.result_shape(x.shape(), columns), x.wanted());
    const std::size_t V = x.shape()[R - 1], n = columns.size(), rows = V == 0 ? 0 : x.size() / V;
    operation.compute(rows, V, columns.data(), n, x.data(), out);
    if (x.wanted()) {
        const std::uint32_t* ids = on.keep(columns.data(), n);
        on.record(y, [&on, x, ids, rows, V, n](const T* d_y) {
            T* d_x = on.adjoint(x);
            parallel_for(rows, (std::size_t{1} << 15) / (n + 1) + 1,
                         [&](std::size_t begin, std::size_t end, std::size_t) {
                             for (std::size_t r = begin; r < end; ++r) {
                                 for (std::size_t i = 0; i < n; ++i) d_x[r * V + ids[i]] += d_y[r * n + i];
                             }
                         });
        });
    }
    return y;
}

}  // namespace heed::ad
