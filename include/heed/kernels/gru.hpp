// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/kernels/sentences.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/simd.hpp>

/// A gated recurrent unit, without its matrix products.
///
///     z  = σ(x_z + u_z),  r = σ(x_r + u_r)        u_z|u_r = h U_zr
///     h̃  = tanh(x_h + u_h)                        u_h = (r ⊙ h) U_h
///     h' = (1 - z) ⊙ h + z ⊙ h̃                    Bahdanau et al. 2015, A.1.1 ·
///
/// z is the candidate's share. Cho et al. 2014 and much code have z and 1 - z the other way round (docs/gru.md).
/// One step is: product, `gru_gates`, product, `gru_blend`; backward: `gru_blend_backward`, product,
/// `gru_gates_backward`, product. Rows whose sentence has ended (step >= length) keep their state and pass its gradient
/// on unchanged.
namespace heed::kernels {

template <class T>
struct gru_step {
    std::size_t batch, width;              // B, H
    const T* inputs;                       // [B,3H] x_z|x_r|x_h, biases included
    std::size_t input_stride;              // elements from one row of inputs to the next: 3H, or more in a slice
    const T* hidden;                       // [B,H] h
    const std::size_t* lengths = nullptr;  // [B] or nullptr: no sentence ends
    std::size_t step = 0;                  // a row has ended if step >= its length
};

/// z and r (into saved [B,3H], parts 0 and 1) and r ⊙ h (reset_hidden [B,H]) from u_z|u_r (recurrent [B,2H]).
/// Rows that have ended: r ⊙ h = 0, and nothing is saved.
template <class T>
void gru_gates(const gru_step<T>& step, const T* recurrent, T* saved, T* reset_hidden)
{
    using namespace simd;
    const std::size_t H = step.width;
    detail::each_sentence(step, [&](std::size_t b, bool over) {
        T* const rh = reset_hidden + b * H;
        if (over) return detail::zero(rh, H);
        const T *x = step.inputs + b * step.input_stride, *u = recurrent + b * 2 * H;
        T* const z = saved + b * 3 * H;
        transform(
            2 * H, z, [](vec<T> in, vec<T> back) { return sigmoid(in + back); }, x, u);
        transform(
            H, rh, [](vec<T> r, vec<T> h) { return r * h; }, static_cast<const T*>(z + H), step.hidden + b * H);
    });
}

/// h̃ (into saved, part 2) and h' (next [B,H]; may be hidden itself) from u_h (recurrent [B,H]).
template <class T>
void gru_blend(const gru_step<T>& step, const T* recurrent, T* saved, T* next)
{
    using namespace simd;
    const std::size_t H = step.width;
    detail::each_sentence(step, [&](std::size_t b, bool over) {
        const T* h = step.hidden + b * H;
        T* const y = next + b * H;
        if (over)
            return transform(
                H, y, [](vec<T> v) { return v; }, h);
        const T *x = step.inputs + b * step.input_stride + 2 * H, *u = recurrent + b * H;
        T* const z = saved + b * 3 * H;
        T* const candidate = z + 2 * H;
        transform(
            H, candidate, [](vec<T> in, vec<T> back) { return tanh(in + back); }, x, u);
        transform(
            H, y, [](vec<T> gate, vec<T> old, vec<T> fresh) { return fma(gate, fresh - old, old); },
            static_cast<const T*>(z), h, static_cast<const T*>(candidate));
    });
}

/// Backward of h̃ = tanh(a_h), h' = (1 - z) ⊙ h + z ⊙ h̃, z = σ(a_z), where a = x + u:
///     da_z = dh' ⊙ (h̃ - h) ⊙ z (1 - z),   da_h = dh' ⊙ z ⊙ (1 - h̃²),   dh += dh' ⊙ (1 - z).
///
/// d_sums holds da_z|da_r|da_h, rows `sum_stride` apart: the gradient of both x and u. Parts 0 and 2 are written (not
/// added to); rows that have ended get 0 there, and dh += dh'.
template <class T>
void gru_blend_backward(const gru_step<T>& step, const T* saved, const T* d_next, T* d_sums, std::size_t sum_stride,
                        T* d_hidden)
{
    using namespace simd;
    const std::size_t H = step.width;
    detail::each_sentence(step, [&](std::size_t b, bool over) {
        T *const dz = d_sums + b * sum_stride, *const dc = dz + 2 * H;
        T* const dh = d_hidden == nullptr ? nullptr : d_hidden + b * H;
        if (over || d_next == nullptr) {
            detail::zero(dz, H);
            detail::zero(dc, H);
            if (dh != nullptr && d_next != nullptr) {
                transform(
                    H, dh, [](vec<T> d, vec<T> g) { return d + g; }, dh, d_next + b * H);
            }
            return;
        }
        const T *z = saved + b * 3 * H, *candidate = z + 2 * H, *h = step.hidden + b * H, *g = d_next + b * H;
        const vec<T> one = splat(T(1));
        if (dh != nullptr) {
            transform(
                H, dh, [one](vec<T> d, vec<T> gate, vec<T> dy) { return fma(dy, one - gate, d); }, dh, z, g);
        }
        transform(
            H, dz,
            [one](vec<T> gate, vec<T> fresh, vec<T> old, vec<T> dy) {
                return dy * (fresh - old) * (gate * (one - gate));
            },
            z, candidate, h, g);
        transform(
            H, dc, [one](vec<T> gate, vec<T> fresh, vec<T> dy) { return dy * gate * fma(-fresh, fresh, one); }, z,
            candidate, g);
    });
}

/// Backward of r = σ(a_r) and r ⊙ h:   da_r = d(rh) ⊙ h ⊙ r (1 - r),   dh += d(rh) ⊙ r.
///
/// Writes part 1 of d_sums (0 for rows that have ended).
template <class T>
void gru_gates_backward(const gru_step<T>& step, const T* saved, const T* d_reset_hidden, T* d_sums,
                        std::size_t sum_stride, T* d_hidden)
{
    using namespace simd;
    const std::size_t H = step.width;
    detail::each_sentence(step, [&](std::size_t b, bool over) {
        T* const dr = d_sums + b * sum_stride + H;
        if (over || d_reset_hidden == nullptr) return detail::zero(dr, H);
        const T *r = saved + b * 3 * H + H, *h = step.hidden + b * H, *g = d_reset_hidden + b * H;
        const vec<T> one = splat(T(1));
        transform(
            H, dr, [one](vec<T> gate, vec<T> old, vec<T> dy) { return dy * old * (gate * (one - gate)); }, r, h, g);
        if (d_hidden != nullptr) {
            T* const dh = d_hidden + b * H;
            transform(
                H, dh, [](vec<T> d, vec<T> gate, vec<T> dy) { return fma(dy, gate, d); }, dh, r, g);
        }
    });
}

}  // namespace heed::kernels
