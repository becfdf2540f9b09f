// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/kernels/rows.hpp>
#include <heed/kernels/sentences.hpp>
#include <heed/simd/simd.hpp>

/// Long short-term memory, without its matrix products.
///
///     i = σ(a_i),  f = σ(a_f),  o = σ(a_o),  g = tanh(a_g)      a = x + u,  u = h U
///     c' = f ⊙ c + i ⊙ g,  h' = o ⊙ tanh(c')                    Hochreiter and Schmidhuber 1997; f: Gers et al. 2000
///
/// One step is a product and `lstm_forward`; backward it is `lstm_backward` and a product. Rows whose sentence has
/// ended (step >= length) keep their state and pass its gradient on unchanged.
namespace heed::kernels {

template <class T>
struct lstm_step {
    std::size_t batch, width;              // B, H
    const T* inputs;                       // [B,4H] x_i|x_f|x_o|x_g, biases included
    const T* hidden;                       // [B,H] h
    const T* cell;                         // [B,H] c
    const std::size_t* lengths = nullptr;  // [B] or nullptr: no sentence ends
    std::size_t step = 0;                  // a row has ended if step >= its length
    std::size_t input_stride = 0;          // elements from one row of inputs to the next; 0: 4H
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
            std::copy_n(step.hidden + b * H, H, h_next);
            std::copy_n(c, H, c_next);
            return;
        }
        transform(
            3 * H, i, [](vec<T> in, vec<T> back) { return sigmoid(in + back); }, x, u);
        T *const f = i + H, *const o = f + H, *const g = o + H, *const squashed = g + H;
        transform(
            H, g, [](vec<T> in, vec<T> back) { return tanh(in + back); }, x + 3 * H, u + 3 * H);
        transform(
            H, c_next, [](vec<T> forget, vec<T> old, vec<T> in, vec<T> fresh) { return fma(forget, old, in * fresh); },
            static_cast<const T*>(f), c, static_cast<const T*>(i), static_cast<const T*>(g));
        transform(
            H, squashed, [](vec<T> v) { return tanh(v); }, static_cast<const T*>(c_next));
        transform(
            H, h_next, [](vec<T> out, vec<T> v) { return out * v; }, static_cast<const T*>(o),
            static_cast<const T*>(squashed));
    });
}

/// Backward, with dC = dc' + dh' ⊙ o ⊙ (1 - tanh²(c')):
///
///     da_i = dC ⊙ g ⊙ i (1 - i),   da_f = dC ⊙ c ⊙ f (1 - f),   da_o = dh' ⊙ tanh(c') ⊙ o (1 - o),
///     da_g = dC ⊙ i ⊙ (1 - g²),    dc += dC ⊙ f
///
/// d_sums [B,4H] is written: the gradient of both x and u. Rows that have ended get 0 there, and dh += dh', dc += dc'.
/// A null d_next_hidden or d_next_cell counts as 0; a null d_hidden or d_cell is not wanted.
template <class T>
void lstm_backward(const lstm_step<T>& step, const T* saved, const T* d_next_hidden, const T* d_next_cell, T* d_sums,
                   T* d_hidden, T* d_cell)
{
    using namespace simd;
    const std::size_t H = step.width;
    detail::each_sentence(step, [&](std::size_t b, bool over) {
        const auto row = [&](auto* x) { return x == nullptr ? nullptr : x + b * H; };
        const T *const dh_next = row(d_next_hidden), *const dc_next = row(d_next_cell);
        T *const dh = row(d_hidden), *const dc = row(d_cell), *const d_i = d_sums + b * 4 * H;
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

}  // namespace heed::kernels
