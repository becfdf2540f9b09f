// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/core/compiled.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/simd.hpp>

/// Recurrent units without their matrix products. Rows whose sentence has ended (step >= length) keep their state and
/// pass its gradient through unchanged.
///
/// A gated recurrent unit (Bahdanau et al. 2015, A.1.1):
///
///     z  = σ(x_z + u_z),  r = σ(x_r + u_r)        u_z|u_r = h U_zr
///     h̃  = tanh(x_h + u_h)                        u_h = (r ⊙ h) U_h
///     h' = (1 - z) ⊙ h + z ⊙ h̃
///
/// z is the weight of the candidate. Cho et al. 2014 and much code swap z and 1 - z (docs/learn/gru.md). One step is:
/// product, `gru_gates`, product, `gru_blend`; backward: `gru_blend_backward`, product, `gru_gates_backward`, product.
///
/// If the reset gate acts after the product, one step is a product and `gru_reset_after`:
///
///     h̃  = tanh(x_h + r ⊙ (u_h + b_h))            u_z|u_r|u_h = h U
///
/// Long short-term memory (Hochreiter and Schmidhuber 1997; f: Gers et al. 2000), a product and `lstm_forward`:
///
///     i = σ(a_i),  f = σ(a_f),  o = σ(a_o),  g = tanh(a_g)      a = x + u,  u = h U
///     c' = f ⊙ c + i ⊙ g,  h' = o ⊙ tanh(c')
namespace heed::inline HEED_TARGET::kernels {

namespace detail {

/// f(b, over) for every sentence b, in parallel; `over` is true if the sentence has ended at this step. `at` has
/// `batch`, `width`, `lengths` and `step`.
template <class Step, class F>
inline void each_sentence(const Step& at, F&& f)
{
    each_row(at.batch, rows_a_shard(at.width, std::size_t{1} << 14),
             [&](std::size_t b) { f(b, at.lengths != nullptr && at.step >= at.lengths[b]); });
}

/// y = x; both may be the same memory.
template <class T>
void keep(std::size_t n, const T* x, T* y)
{
    if (x != y) std::copy_n(x, n, y);
}

/// y = h' = (1 - z) ⊙ h + z ⊙ h̃
template <class T>
void gru_next(std::size_t H, const T* z, const T* h, const T* candidate, T* y)
{
    using namespace simd;
    transform(
        H, y, [](auto gate, auto old, auto fresh) { return fma(gate, fresh - old, old); }, z, h, candidate);
}

}  // namespace detail

template <class T>
struct gru_step {
    std::size_t batch, width;              // B, H
    const T* inputs;                       // [B,3H] x_z|x_r|x_h, biases included
    std::size_t input_stride;              // row stride of inputs: 3H, or more in a slice
    const T* hidden;                       // [B,H] h
    const std::size_t* lengths = nullptr;  // [B] or nullptr: no sentence ends
    std::size_t step = 0;                  // a row has ended if step >= its length
};

namespace detail {

/// Backward of h' of sentence b with z|r|h̃ = z …, z = σ(a_z), h̃ = tanh(a_h); a null d_next counts as 0:
///
///     da_z = dh' ⊙ (h̃ - h) ⊙ z (1 - z),   da_h = dh' ⊙ z ⊙ (1 - h̃²),   dh += dh' ⊙ (1 - z)
template <class T>
void gru_next_backward(const gru_step<T>& step, std::size_t b, bool over, const T* z, const T* d_next, T* da_z, T* da_h,
                       T* d_hidden)
{
    using namespace simd;
    const std::size_t H = step.width;
    const T *const h = step.hidden + b * H, *const g = behind(d_next, b * H), *const candidate = z + 2 * H;
    T* const dh = behind(d_hidden, b * H);
    if (over || g == nullptr) {
        zero(da_z, H);
        zero(da_h, H);
        if (dh != nullptr && g != nullptr) add(H, dh, g);
        return;
    }
    each_column<T>(0, H, [&](std::size_t i, auto get, auto put) {
        const vec<T> one = splat(T(1)), gate = get(z + i), fresh = get(candidate + i), dy = get(g + i);
        if (dh != nullptr) put(dh + i, fma(dy, one - gate, get(dh + i)));
        put(da_z + i, dy * (fresh - get(h + i)) * (gate * (one - gate)));
        put(da_h + i, dy * gate * fma(-fresh, fresh, one));
    });
}

}  // namespace detail

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
            2 * H, z, [](auto in, auto back) { return sigmoid(in + back); }, x, u);
        transform(
            H, rh, [](auto r, auto h) { return r * h; }, z + H, step.hidden + b * H);
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
        if (over) return detail::keep(H, h, y);
        const T *x = step.inputs + b * step.input_stride + 2 * H, *u = recurrent + b * H;
        T* const z = saved + b * 3 * H;
        T* const candidate = z + 2 * H;
        transform(
            H, candidate, [](auto in, auto back) { return tanh(in + back); }, x, u);
        detail::gru_next<T>(H, z, h, candidate, y);
    });
}

/// Backward of h', where a = x + u: d_sums holds da_z|da_r|da_h with row stride `sum_stride`: the gradient of both x
/// and u. Parts 0 and 2 are overwritten (not added to); rows that have ended get 0 there, and dh += dh'.
template <class T>
void gru_blend_backward(const gru_step<T>& step, const T* saved, const T* d_next, T* d_sums, std::size_t sum_stride,
                        T* d_hidden)
{
    const std::size_t H = step.width;
    detail::each_sentence(step, [&](std::size_t b, bool over) {
        T* const dz = d_sums + b * sum_stride;
        detail::gru_next_backward(step, b, over, saved + b * 3 * H, d_next, dz, dz + 2 * H, d_hidden);
    });
}

/// Backward of r = σ(a_r) and r ⊙ h:   da_r = d(rh) ⊙ h ⊙ r (1 - r),   dh += d(rh) ⊙ r.
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
            H, dr, [one](auto gate, auto old, auto dy) { return dy * old * (gate * (one - gate)); }, r, h, g);
        if (d_hidden != nullptr) add_product(H, d_hidden + b * H, g, r);
    });
}

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
        if (over) return detail::keep(H, h, y);
        const T *const x = step.inputs + b * step.input_stride, *const u = recurrent + b * 3 * H;
        T *const z = saved + b * 4 * H, *const r = z + H, *const candidate = z + 2 * H, *const p = z + 3 * H;
        transform(
            2 * H, z, [](auto in, auto back) { return sigmoid(in + back); }, x, u);
        transform(
            H, p, [](auto back, auto c) { return back + c; }, u + 2 * H, bias);
        transform(
            H, candidate, [](auto in, auto gate, auto back) { return tanh(fma(gate, back, in)); }, x + 2 * H, r, p);
        detail::gru_next<T>(H, z, h, candidate, y);
    });
}

/// Backward, where a = x + u: as in gru_blend_backward, and da_r = da_h ⊙ p ⊙ r (1 - r), dp = da_h ⊙ r.
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
        T *const da = d_inputs + b * 3 * H, *const da_h = da + 2 * H, *const du = d_products + b * 3 * H;
        const T *const z = saved + b * 4 * H, *const r = z + H, *const p = z + 3 * H;
        detail::gru_next_backward(step, b, over, z, d_next, da, da_h, d_hidden);
        if (over) {
            detail::zero(da + H, H);
            detail::zero(du, 3 * H);
            return;
        }
        transform(
            H, da + H, [one](auto gate, auto back, auto d) { return d * back * (gate * (one - gate)); }, r, p, da_h);
        std::copy_n(da, 2 * H, du);
        transform(
            H, du + 2 * H, [](auto d, auto gate) { return d * gate; }, da_h, r);
    });
}

template <class T>
struct lstm_step {
    std::size_t batch, width;              // B, H
    const T* inputs;                       // [B,4H] x_i|x_f|x_o|x_g, biases included
    const T* hidden;                       // [B,H] h
    const T* cell;                         // [B,H] c
    const std::size_t* lengths = nullptr;  // [B] or nullptr: no sentence ends
    std::size_t step = 0;                  // a row has ended if step >= its length
    std::size_t input_stride = 0;          // row stride of inputs; 0: 4H
};

/// h' and c' [B,H] from u (recurrent [B,4H]). saved [B,5H]: i|f|o|g and tanh(c'), nothing for rows that have ended.
template <class T>
void lstm_forward(const lstm_step<T>& step, const T* recurrent, T* saved, T* next_hidden, T* next_cell)
{
    using namespace simd;
    const std::size_t H = step.width, stride = step.input_stride == 0 ? 4 * H : step.input_stride;
    detail::each_sentence(step, [&](std::size_t b, bool over) {
        const T *x = step.inputs + b * stride, *u = recurrent + b * 4 * H, *c = step.cell + b * H;
        T *const h_next = next_hidden + b * H, *const c_next = next_cell + b * H, *const i = saved + b * 5 * H;
        if (over) {
            detail::keep(H, step.hidden + b * H, h_next);
            detail::keep(H, c, c_next);
            return;
        }
        transform(
            3 * H, i, [](auto in, auto back) { return sigmoid(in + back); }, x, u);
        T *const f = i + H, *const o = f + H, *const g = o + H, *const squashed = g + H;
        transform(
            H, g, [](auto in, auto back) { return tanh(in + back); }, x + 3 * H, u + 3 * H);
        transform(
            H, c_next, [](auto forget, auto old, auto in, auto fresh) { return fma(forget, old, in * fresh); }, f, c, i,
            g);
        transform(
            H, squashed, [](auto v) { return tanh(v); }, c_next);
        transform(
            H, h_next, [](auto out, auto v) { return out * v; }, o, squashed);
    });
}

/// Backward, with dC = dc' + dh' ⊙ o ⊙ (1 - tanh²(c')):
///
///     da_i = dC ⊙ g ⊙ i (1 - i),   da_f = dC ⊙ c ⊙ f (1 - f),   da_o = dh' ⊙ tanh(c') ⊙ o (1 - o),
///     da_g = dC ⊙ i ⊙ (1 - g²),    dc += dC ⊙ f
///
/// d_sums [B,4H] is written: the gradient of both x and u. Rows that have ended get 0 there, and dh += dh', dc += dc'.
/// A null d_next_hidden or d_next_cell counts as 0; a null d_hidden or d_cell is not computed.
template <class T>
void lstm_backward(const lstm_step<T>& step, const T* saved, const T* d_next_hidden, const T* d_next_cell, T* d_sums,
                   T* d_hidden, T* d_cell)
{
    using namespace simd;
    const std::size_t H = step.width;
    detail::each_sentence(step, [&](std::size_t b, bool over) {
        const T *const dh_next = detail::behind(d_next_hidden, b * H), *const dc_next =
                                                                           detail::behind(d_next_cell, b * H);
        T *const dh = detail::behind(d_hidden, b * H), *const dc = detail::behind(d_cell, b * H),
                 *const d_i = d_sums + b * 4 * H;
        if (over) {
            detail::zero(d_i, 4 * H);
            if (dh != nullptr && dh_next != nullptr) kernels::add(H, dh, dh_next);
            if (dc != nullptr && dc_next != nullptr) kernels::add(H, dc, dc_next);
            return;
        }
        const T *const i = saved + b * 5 * H, *const f = i + H, *const o = f + H, *const g = o + H;
        const T *const squashed = g + H, *const c = step.cell + b * H;
        T *const d_f = d_i + H, *const d_o = d_f + H, *const d_g = d_o + H;
        each_register<T>(H, [&](std::size_t at, std::size_t n) {
            const auto load = [at, n](const T* x) { return load_first(x + at, n); };
            const auto store = [at, n](T* x, vec<T> v) { store_first(x + at, v, n); };
            const vec<T> one = splat(T(1)), in = load(i), forget = load(f), out = load(o), fresh = load(g),
                         t = load(squashed);
            const vec<T> of_hidden = dh_next == nullptr ? vec<T>{} : load(dh_next);
            const vec<T> of_cell = dc_next == nullptr ? vec<T>{} : load(dc_next);
            const vec<T> d = fma(of_hidden * out, fma(-t, t, one), of_cell);
            store(d_i, d * fresh * (in * (one - in)));
            store(d_f, d * load(c) * (forget * (one - forget)));
            store(d_o, of_hidden * t * (out * (one - out)));
            store(d_g, d * in * fma(-fresh, fresh, one));
            if (dc != nullptr) store(dc, fma(d, forget, load(dc)));
        });
    });
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_RECURRENT(X, T) \
    X(T, gru_gates, void, gru_gates, (const gru_step<T>& step, const T* recurrent, T* saved, T* reset_hidden), (step, recurrent, saved, reset_hidden)) \
    X(T, gru_blend, void, gru_blend, (const gru_step<T>& step, const T* recurrent, T* saved, T* next), (step, recurrent, saved, next)) \
    X(T, gru_blend_backward, void, gru_blend_backward, (const gru_step<T>& step, const T* saved, const T* d_next, T* d_sums, std::size_t sum_stride, T* d_hidden), (step, saved, d_next, d_sums, sum_stride, d_hidden)) \
    X(T, gru_gates_backward, void, gru_gates_backward, (const gru_step<T>& step, const T* saved, const T* d_reset_hidden, T* d_sums, std::size_t sum_stride, T* d_hidden), (step, saved, d_reset_hidden, d_sums, sum_stride, d_hidden)) \
    X(T, gru_reset_after, void, gru_reset_after, (const gru_step<T>& step, const T* recurrent, const T* bias, T* saved, T* next), (step, recurrent, bias, saved, next)) \
    X(T, gru_reset_after_backward, void, gru_reset_after_backward, (const gru_step<T>& step, const T* saved, const T* d_next, T* d_inputs, T* d_products, T* d_hidden), (step, saved, d_next, d_inputs, d_products, d_hidden)) \
    X(T, lstm_forward, void, lstm_forward, (const lstm_step<T>& step, const T* recurrent, T* saved, T* next_hidden, T* next_cell), (step, recurrent, saved, next_hidden, next_cell)) \
    X(T, lstm_backward, void, lstm_backward, (const lstm_step<T>& step, const T* saved, const T* d_next_hidden, const T* d_next_cell, T* d_sums, T* d_hidden, T* d_cell), (step, saved, d_next_hidden, d_next_cell, d_sums, d_hidden, d_cell))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_RECURRENT)

}  // namespace heed::inline HEED_TARGET::kernels
