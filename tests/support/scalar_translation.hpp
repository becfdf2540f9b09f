// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <support/scalar_attention.hpp>

/// The layers around an attention, from the papers' equations: one sentence, in scalar loops. Positions count from 0.
namespace support::scalar {

/// A recurrent unit with separate parameters per gate. Rows of W are inputs, rows of U states.
struct gated_unit {
    matrix W_z, W_r, W;
    matrix U_z, U_r, U;
    numbers b_z, b_r, b;
};

/// Selected columns of a matrix: heed stores the parameters of several gates in one matrix.
inline matrix columns(const matrix& m, std::size_t first, std::size_t count)
{
    matrix part;
    for (const numbers& row : m) {
        const auto begin = row.begin() + static_cast<std::ptrdiff_t>(first);
        part.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    return part;
}

/// z_i = σ(W_z x_i + U_z h_{i-1}),  r_i = σ(W_r x_i + U_r h_{i-1})
/// h̃_i = tanh(W x_i + U (r_i ∘ h_{i-1}))
/// h_i = (1 - z_i) ∘ h_{i-1} + z_i ∘ h̃_i               Bahdanau et al. 2015, A.1.1 and A.2.1, with biases
inline numbers next_state(const gated_unit& f, const numbers& x, const numbers& h)
{
    const auto logistic = [](double a) { return 1 / (1 + std::exp(-a)); };
    const std::size_t H = h.size();
    const numbers Wz = times(x, f.W_z), Wr = times(x, f.W_r), Wx = times(x, f.W);
    const numbers Uz = times(h, f.U_z), Ur = times(h, f.U_r);
    numbers z(H), reset(H), next(H);
    for (std::size_t k = 0; k < H; ++k) {
        z[k] = logistic(Wz[k] + Uz[k] + f.b_z[k]);
        reset[k] = logistic(Wr[k] + Ur[k] + f.b_r[k]) * h[k];
    }
    const numbers Uh = times(reset, f.U);
    for (std::size_t k = 0; k < H; ++k) { next[k] = (1 - z[k]) * h[k] + z[k] * std::tanh(Wx[k] + Uh[k] + f.b[k]); }
    return next;
}

/// →h_i for each word, read from first to last.
inline matrix read_forwards(const gated_unit& f, const numbers& start, const matrix& words)
{
    matrix states;
    numbers h = start;
    for (std::size_t i = 0; i < words.size(); ++i) {
        h = next_state(f, words[i], h);
        states.push_back(h);
    }
    return states;
}

/// ←h_i for each word, read from last to first, in the order of the words.
inline matrix read_backwards(const gated_unit& f, const numbers& start, const matrix& words)
{
    matrix states(words.size());
    numbers h = start;
    for (std::size_t i = words.size(); i > 0; --i) {
        h = next_state(f, words[i - 1], h);
        states[i - 1] = h;
    }
    return states;
}

/// [a; b]
inline numbers joined(numbers a, const numbers& b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/// tanh(x W + b)
inline numbers tanh_layer(const numbers& x, const matrix& W, const numbers& b)
{
    numbers y = times(x, W);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::tanh(y[i] + b[i]);
    return y;
}

/// t_j = max{t̃_{2j-1}, t̃_{2j}}, counting from 1           Bahdanau et al. 2015, A.2.2
inline numbers maxout(const numbers& x)
{
    numbers t;
    for (std::size_t j = 1; 2 * j <= x.size(); ++j) t.push_back(std::max(x[2 * j - 2], x[2 * j - 1]));
    return t;
}

/// The layers around the attention in a decoder.
struct decoder_layers {
    matrix embedding;      // of the target words
    gated_unit cell;       // reads [E y_{i-1}; c_i]
    matrix U_o, V_o, C_o;  // from s_i, E y_{i-1} and c_i
    numbers b_o;
    matrix W_o;
    numbers b;
};

/// log p(y_1), log p(y_2), … with one context for all steps (RNNencdec, Cho et al. 2014):
///
///     s_i = GRU(s_{i-1}, [E y_{i-1}; c]),  t̃_i = U_o s_i + V_o E y_{i-1} + C_o c + b_o
///     p(y_i) ∝ exp(y_iᵀ W_o t_i)                           Bahdanau et al. 2015, A.2.2, with s_i in t̃_i
inline numbers log_probabilities(const decoder_layers& d, numbers s, const numbers& context,
                                 const std::vector<std::size_t>& previous, const std::vector<std::size_t>& words)
{
    numbers all;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const numbers& y = d.embedding[previous[i]];
        s = next_state(d.cell, joined(y, context), s);
        numbers deep = times(s, d.U_o);
        const numbers of_word = times(y, d.V_o), of_context = times(context, d.C_o);
        for (std::size_t k = 0; k < deep.size(); ++k) deep[k] += of_word[k] + of_context[k] + d.b_o[k];
        const numbers scores = times(maxout(deep), d.W_o);
        double sum = 0;
        for (std::size_t v = 0; v < scores.size(); ++v) sum += std::exp(scores[v] + d.b[v]);
        all.push_back(scores[words[i]] + d.b[words[i]] - std::log(sum));
    }
    return all;
}

}  // namespace support::scalar
