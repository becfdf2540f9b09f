// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/heads.hpp>

/// The taped twins of ops/heads.hpp.
namespace heed::ad {

/// y_p = x[…, p-th stretch]  ->  ∂x[…, p-th stretch] += ∂y_p. The parts are pieces of one value.
template <class T, std::size_t R>
std::vector<var<T, R>> twin(const ops::split_op& operation, const var<T, R>& x, std::size_t parts)
{
    tape<T>& on = x.tape();
    const auto shape = operation.result_shape(x.shape(), parts);
    const std::size_t n = shape[R - 1], size = x.size() / parts, rows = n == 0 ? 0 : size / n;
    auto [whole, out] = on.template make<2>({parts, size}, x.wanted());
    operation.each_stretch(rows, parts, n, [&x, out = out](std::size_t from, std::size_t to, std::size_t count) {
        std::copy_n(x.data() + from, count, out + to);
    });
    on.record(whole, [&on, x, rows, parts, n](const T* d_y) {
        T* d_x = on.adjoint(x);
        ops::split_op::each_stretch(rows, parts, n, [=](std::size_t to, std::size_t from, std::size_t count) {
            kernels::add(count, d_x + to, d_y + from);
        });
    });
    std::vector<var<T, R>> y;
    y.reserve(parts);
    for (std::size_t p = 0; p < parts; ++p) y.push_back(on.piece(whole, p * size, shape));
    return y;
}

/// y = [a; b; …]  ->  ∂a += ∂y[…, its stretch], and so on
template <class T, std::size_t R>
var<T, R> twin(const ops::join_op& operation, const std::vector<var<T, R>>& parts)
{
    const auto shape = operation.result_shape(parts);
    tape<T>& on = parts.front().tape();
    bool wanted = false;
    for (const auto& part : parts) wanted = wanted || part.wanted();
    auto [y, out] = on.template make<R>(shape, wanted);
    operation.compute(parts, shape[R - 1], y.size(), out);
    if (wanted) {
        const var<T, R>* kept = on.keep(parts.data(), parts.size());
        on.record(y, [&on, y = y, kept, count = parts.size()](const T* d_y) {
            const std::size_t N = y.shape()[R - 1];
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

}  // namespace heed::ad
