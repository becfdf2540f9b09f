// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/kernels/gru.hpp>
#include <heed/kernels/sentences.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/simd.hpp>

/// A gated recurrent unit whose reset gate acts on the product, without its matrix products.
///
///     z|r = σ(x_z|x_r + u_z|u_r)                  u_z|u_r|u_h = h U
///     p   = u_h + b_h,  h̃ = tanh(x_h + r ⊙ p)
///     h'  = (1 - z) ⊙ h + z ⊙ h̃
///
/// One step is a product and `gru_reset_after`; backward: `gru_reset_after_backward` and a product. Rows whose sentence
/// has ended keep their state and pass its gradient on unchanged.
namespace heed::kernels {

/// z|r|h̃|p (into saved [B,4H]) and h' (next [B,H]; may be hidden itself) from u_z|u_r|u_h (recurrent [B,3H]) and b_h
/// [H]. Rows that have ended: nothing is saved.
template <class T>
void gru_reset_after(const gru_step<T>& step, const T* recurrent, const T* bias, T* saved, T* next)
{
    using namespace simd;
    const std::size_t H = step.width;
    detail::each_sentence(step, [&](std::size_t b, bool over) {
        const T* const h = step.hidden + b * H;
        T* const y = next + b * H;
        if (over)
            return transform(
                H, y, [](vec<T> v) { return v; }, h);
        const T *const x = step.inputs + b * step.input_stride, *const u = recurrent + b * 3 * H;
        T *const z = saved + b * 4 * H, *const r = z + H, *const candidate = z + 2 * H, *const p = z + 3 * H;
        transform(
            2 * H, z, [](vec<T> in, vec<T> back) { return sigmoid(in + back); }, x, u);
        transform(
            H, p, [](vec<T> back, vec<T> c) { return back + c; }, u + 2 * H, bias);
        transform(
            H, candidate, [](vec<T> in, vec<T> gate, vec<T> back) { return tanh(fma(gate, back, in)); }, x + 2 * H,
            static_cast<const T*>(r), static_cast<const T*>(p));
        transform(
            H, y, [](vec<T> gate, vec<T> old, vec<T> fresh) { return fma(gate, fresh - old, old); },
            static_cast<const T*>(z), h, static_cast<const T*>(candidate));
    });
}

/// Backward, where a = x + u:
///
///     da_z = dh' ⊙ (h̃ - h) ⊙ z (1 - z),  da_h = dh' ⊙ z ⊙ (1 - h̃²),  da_r = da_h ⊙ p ⊙ r (1 - r)
///     dp = da_h ⊙ r,  dh += dh' ⊙ (1 - z)
///
/// Writes d_inputs = da_z|da_r|da_h and d_products = da_z|da_r|dp, [B,3H] each; rows that have ended get 0 there, and
/// dh += dh'. d_hidden may be null.
template <class T>
void gru_reset_after_backward(const gru_step<T>& step, const T* saved, const T* d_next, T* d_inputs, T* d_products,
                              T* d_hidden)
{
    using namespace simd;
    const std::size_t H = step.width;
    const vec<T> one = splat(T(1));
    detail::each_sentence(step, [&](std::size_t b, bool over) {
        T *const da = d_inputs + b * 3 * H, *const du = d_products + b * 3 * H;
        T* const dh = d_hidden == nullptr ? nullptr : d_hidden + b * H;
        const T* const g = d_next + b * H;
        if (over) {
            detail::zero(da, 3 * H);
            detail::zero(du, 3 * H);
            if (dh != nullptr) {
                transform(
                    H, dh, [](vec<T> d, vec<T> dy) { return d + dy; }, dh, g);
            }
            return;
        }
        const T *const z = saved + b * 4 * H, *const r = z + H, *const candidate = z + 2 * H, *const p = z + 3 * H;
        const T* const h = step.hidden + b * H;
        if (dh != nullptr) {
            transform(
                H, dh, [one](vec<T> d, vec<T> gate, vec<T> dy) { return fma(dy, one - gate, d); }, dh, z, g);
        }
        transform(
            H, da,
            [one](vec<T> gate, vec<T> fresh, vec<T> old, vec<T> dy) {
                return dy * (fresh - old) * (gate * (one - gate));
            },
            z, candidate, h, g);
        T* const da_h = da + 2 * H;
        transform(
            H, da_h, [one](vec<T> gate, vec<T> fresh, vec<T> dy) { return dy * gate * fma(-fresh, fresh, one); }, z,
            candidate, g);
        transform(
            H, da + H, [one](vec<T> gate, vec<T> back, vec<T> d) { return d * back * (gate * (one - gate)); }, r, p,
            static_cast<const T*>(da_h));
        transform(
            2 * H, du, [](vec<T> d) { return d; }, static_cast<const T*>(da));
        transform(
            H, du + 2 * H, [](vec<T> d, vec<T> gate) { return d * gate; }, static_cast<const T*>(da_h), r);
    });
}

}  // namespace heed::kernels
