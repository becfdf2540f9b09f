// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/mask.hpp>

/// The taped twins of ops/mask.hpp: nothing comes back from where nothing could be seen.
namespace heed::ad {

namespace detail {

/// ∂x += ∂y at the positions that the mask shows, for y = x there.
template <class T, std::size_t R>
void record_shown(tape<T>& on, const var<T, R>& x, const var<T, R>& y, std::size_t width, const std::uint8_t* attend)
{
    on.record(y, [&on, x, width, attend](const T* d_y) {
        T* d_x = on.adjoint(x);
        for (std::size_t i = 0; i * width < x.size(); ++i) {
            if (attend[i] != 0) kernels::add(width, d_x + i * width, d_y + i * width);
        }
    });
}

/// The stretches of a window, in memory that lives as long as the recording.
struct kept_window {
    const std::size_t* begin;
    const std::size_t* count;
    std::size_t width;  // positions
};
template <class T>
kept_window keep(tape<T>& on, const window& where)
{
    return {on.keep(where.begin.data(), where.begin.size()), on.keep(where.count.data(), where.count.batch()),
            where.width};
}

/// add(offset in the whole, offset in the window, elements) for the stretch of each row of a whole [B,T] or [B,T,N].
template <std::size_t R, class Add>
void each_stretch(const shape_of_rank<R>& whole, const kept_window& where, Add&& add)
{
    const std::size_t n = R == 3 ? whole[R - 1] : 1;
    for (std::size_t b = 0; b < whole[0]; ++b) {
        add((b * whole[1] + where.begin[b]) * n, b * where.width * n, where.count[b] * n);
    }
}

}  // namespace detail

/// y = e where shown, -inf elsewhere  ->  ∂e += ∂y where shown
template <class T, std::size_t R>
var<T, R> twin(const ops::hide_op& operation, const var<T, R>& e, const boolean_mask<2>& mask)
{
    tape<T>& on = e.tape();
    operation.check(e.shape(), mask);
    const std::size_t positions = e.shape()[0] * e.shape()[1], width = R == 3 ? e.shape()[R - 1] : 1;
    auto [y, out] = on.template make<R>(e.shape(), e.wanted());
    const std::uint8_t* attend = on.keep(mask.data(), positions);
    operation.template compute<T>(positions, width, attend, e.data(), out);
    if (e.wanted()) detail::record_shown(on, e, y, width, attend);
    return y;
}

/// y = x where shown, 0 elsewhere  ->  ∂x += ∂y where shown
template <class T, std::size_t R>
var<T, R> twin(const ops::clear_hidden_op& operation, const var<T, R>& x, const boolean_mask<2>& mask)
{
    tape<T>& on = x.tape();
    mask.require("attention::on", {x.shape()[0], x.shape()[1]});
    const std::size_t positions = x.shape()[0] * x.shape()[1], width = R == 3 ? x.shape()[R - 1] : 1;
    auto [y, out] = on.template make<R>(x.shape(), x.wanted());
    const std::uint8_t* attend = on.keep(mask.data(), positions);
    operation.template compute<T>(positions, width, attend, x.data(), out);
    if (x.wanted()) detail::record_shown(on, x, y, width, attend);
    return y;
}

/// y = e + m, -inf where m is  ->  elsewhere ∂e += ∂y and ∂m += Σ_d ∂y
template <tensor E, tensor M>
auto twin(const ops::add_mask_op& operation, const E& e_, const M& mask_)
{
    using T = element_of<E>;
    constexpr std::size_t R = rank_of<E>;
    tape<T>& on = tape_of(e_, mask_);
    operation.check(shape_of(e_), shape_of(mask_));
    const var<T, R> e = on_tape(on, e_);
    const var<T, 2> mask = on_tape(on, mask_);
    auto [y, out] = on.template make<R>(e.shape(), e.wanted() || mask.wanted());
    operation.template compute<T>(mask.size(), R == 3 ? e.shape()[R - 1] : 1, mask.data(), e.data(), out);
    on.record(y, [&on, e, mask](const T* d_y) {
        const std::size_t positions = mask.size(), width = R == 3 ? e.shape()[R - 1] : 1;
        T* d_e = on.wanted_adjoint(e);
        T* d_m = on.wanted_adjoint(mask);
        for (std::size_t i = 0; i < positions; ++i) {
            if (mask.data()[i] == -std::numeric_limits<T>::infinity()) continue;
            for (std::size_t k = i * width; k < (i + 1) * width; ++k) {
                if (d_e != nullptr) d_e[k] += d_y[k];
                if (d_m != nullptr) d_m[i] += d_y[k];
            }
        }
    });
    return y;
}

/// y = the window of x  ->  ∂x[window] += ∂y
template <class T, std::size_t R>
var<T, R> twin(const ops::window_of_op& operation, const var<T, R>& x, const window& where)
{
    tape<T>& on = x.tape();
    auto [y, out] = on.template make<R>(operation.result_shape(x.shape(), where), x.wanted());
    std::fill_n(out, y.size(), T(0));
    const auto kept = detail::keep(on, where);
    detail::each_stretch(x.shape(), kept, [&x, out = out](std::size_t from, std::size_t to, std::size_t n) {
        std::copy_n(x.data() + from, n, out + to);
    });
    on.record(y, [&on, x, kept](const T* d_y) {
        T* d_x = on.adjoint(x);
        detail::each_stretch(x.shape(), kept, [d_x, d_y](std::size_t to, std::size_t from, std::size_t n) {
            kernels::add(n, d_x + to, d_y + from);
        });
    });
    return y;
}

/// y = x with w in the window  ->  ∂x += ∂y outside the window, ∂w += ∂y within
template <tensor X, tensor W>
auto twin(const ops::put_window_op& operation, const X& x_, const W& w_, const window& where)
{
    using T = element_of<X>;
    constexpr std::size_t R = rank_of<X>;
    tape<T>& on = tape_of(x_, w_);
    operation.check(shape_of(x_), shape_of(w_), where);
    const var<T, R> x = on_tape(on, x_), w = on_tape(on, w_);
    auto [y, out] = on.template make<R>(x.shape(), x.wanted() || w.wanted());
    std::copy_n(x.data(), x.size(), out);
    const auto kept = detail::keep(on, where);
    detail::each_stretch(x.shape(), kept, [&w, out = out](std::size_t to, std::size_t from, std::size_t n) {
        std::copy_n(w.data() + from, n, out + to);
    });
    on.record(y, [&on, x, w, kept](const T* d_y) {
        if (T* d_x = on.wanted_adjoint(x)) {
            const std::size_t row = x.size() / std::max<std::size_t>(1, x.shape()[0]);
            std::size_t b = 0;
            detail::each_stretch(x.shape(), kept, [&](std::size_t at, std::size_t, std::size_t n) {
                const std::size_t first = b * row, last = ++b * row;
                kernels::add(at - first, d_x + first, d_y + first);
                kernels::add(last - at - n, d_x + at + n, d_y + at + n);
            });
        }
        if (T* d_w = on.wanted_adjoint(w)) {
            detail::each_stretch(x.shape(), kept, [d_w, d_y](std::size_t from, std::size_t to, std::size_t n) {
                kernels::add(n, d_w + to, d_y + from);
            });
        }
    });
    return y;
}

/// y = w in its place, 0 elsewhere  ->  ∂w += ∂y within
template <class T, std::size_t R>
var<T, R> twin(const ops::spread_window_op& operation, const var<T, R>& w, const window& where, std::size_t positions)
{
    tape<T>& on = w.tape();
    auto [y, out] = on.template make<R>(operation.result_shape(w.shape(), where, positions), w.wanted());
    std::fill_n(out, y.size(), T(0));
    const auto kept = detail::keep(on, where);
    detail::each_stretch(y.shape(), kept, [&w, out = out](std::size_t to, std::size_t from, std::size_t n) {
        std::copy_n(w.data() + from, n, out + to);
    });
    on.record(y, [&on, w, y = y, kept](const T* d_y) {
        T* d_w = on.adjoint(w);
        detail::each_stretch(y.shape(), kept, [d_w, d_y](std::size_t from, std::size_t to, std::size_t n) {
            kernels::add(n, d_w + to, d_y + from);
        });
    });
    return y;
}

}  // namespace heed::ad
