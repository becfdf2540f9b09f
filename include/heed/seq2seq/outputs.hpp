// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include <heed/nn/init.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/products.hpp>

namespace heed::ops {

/// y_i = max(x_2i, x_2i+1), the greater of each pair of neighbours: x [...,2N] -> [...,N]. Goodfellow et al. 2013;
/// Bahdanau et al. 2015, A.2.2.
///
///     ∂x of the greater one += ∂y_i; of the first one if they are equal
struct maxout_op : operation<maxout_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x) { return detail::half_of("maxout", x.shape, "pairs of neighbours"); }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, out<T, R> y)
    {
        for (std::size_t i = 0; i < y.size(); ++i) y.data[i] = std::max(x.data[2 * i], x.data[2 * i + 1]);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x)
    {
        for (std::size_t i = 0; i < y.size(); ++i) {
            const bool second = x.data[2 * i + 1] > x.data[2 * i];
            d_x.data[2 * i] += second ? T(0) : d_y.data[i];
            d_x.data[2 * i + 1] += second ? d_y.data[i] : T(0);
        }
    }
};
inline constexpr maxout_op maxout{};

}  // namespace heed::ops

/// What a recurrent decoder makes of its state s, the previous word y and the context c before the words are scored: a
/// policy of seq2seq::decoder.
///
///     policy.read(s, y, c)    the readout t [...,L] of one step ([B,.]) or of all at once ([S,B,.])
///     policy.W_o, policy.b    the last layer: the scores of the words are t W_o + b
///
/// Its parameters are named among the decoder's own.
namespace heed::seq2seq::output {

/// t = maxout(U_o s_i + V_o y_{i-1} + C_o c_i + b_o)           Bahdanau et al. 2015, appendix A.2.2
///
/// Deviations: it reads s_i where the appendix prints s_{i-1}, as the authors' code does; biases.
template <class Matrix, class Vector>
struct maxout {
    Matrix U_o;  // [H,2L]
    Matrix V_o;  // [E,2L]
    Matrix C_o;  // [D,2L]
    Vector b_o;  // [2L]
    Matrix W_o;  // [L,V]
    Vector b;    // [V]

    /// t [B,L] of the state s [B,H], the word y [B,E] and the context c [B,D].
    auto read(const tensor auto& s, const tensor auto& y, const tensor auto& c) const
    {
        return ops::maxout(ops::linear_onto(ops::linear_onto(ops::linear(y, V_o, b_o), s, U_o), c, C_o));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return output::maxout{visit("U_o", self.U_o), visit("V_o", self.V_o), visit("C_o", self.C_o),
                              visit("b_o", self.b_o), visit("W_o", self.W_o), visit("b", self.b)};
    }
};
template <class Matrix, class Vector>
maxout(Matrix, Matrix, Matrix, Vector, Matrix, Vector) -> maxout<Matrix, Vector>;

/// The state itself: p(y_i) = softmax(W_o s_i + b)             Choi et al. 2018, §2
template <class Matrix, class Vector>
struct linear {
    Matrix W_o;  // [H,V]
    Vector b;    // [V]

    /// The state itself.
    template <tensor State>
    State read(const State& s, const tensor auto&, const tensor auto&) const
    {
        return s;
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return output::linear{visit("W_o", self.W_o), visit("b", self.b)};
    }
};
template <class Matrix, class Vector>
linear(Matrix, Vector) -> linear<Matrix, Vector>;

/// t = tanh(U_o s_i + V_o y_{i-1} + C_o c_i + b_o)             Sankaran et al. 2016, eq. 1, as in dl4mt
template <class Matrix, class Vector>
struct two_layers {
    Matrix U_o;  // [H,L]
    Matrix V_o;  // [E,L]
    Matrix C_o;  // [D,L]
    Vector b_o;  // [L]
    Matrix W_o;  // [L,V]
    Vector b;    // [V]

    /// t [B,L] of the state s [B,H], the word y [B,E] and the context c [B,D].
    auto read(const tensor auto& s, const tensor auto& y, const tensor auto& c) const
    {
        return ops::tanh(ops::linear_onto(ops::linear_onto(ops::linear(y, V_o, b_o), s, U_o), c, C_o));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return output::two_layers{visit("U_o", self.U_o), visit("V_o", self.V_o), visit("C_o", self.C_o),
                                  visit("b_o", self.b_o), visit("W_o", self.W_o), visit("b", self.b)};
    }
};
template <class Matrix, class Vector>
two_layers(Matrix, Matrix, Matrix, Vector, Matrix, Vector) -> two_layers<Matrix, Vector>;

/// The attentional vector: h̃_i = tanh(W_c [c_i; s_i]),  p(y_i) = softmax(W_o h̃_i + b)      Luong et al. 2015, eq. 5 and
/// 6
///
/// Deviation: the bias b.
template <class Matrix, class Vector>
struct attentional {
    Matrix W_c;  // [D+H,L]
    Matrix W_o;  // [L,V]
    Vector b;    // [V]

    /// The attentional vector [B,L] of the state s [B,H] and the context c [B,D].
    auto read(const tensor auto& s, const tensor auto&, const tensor auto& c) const
    {
        return ops::tanh(ops::linear(ops::concat(c, s), W_c));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return output::attentional{visit("W_c", self.W_c), visit("W_o", self.W_o), visit("b", self.b)};
    }
};
template <class Matrix, class Vector>
attentional(Matrix, Matrix, Vector) -> attentional<Matrix, Vector>;

/// Input feeding: the next step's cell reads the readout beside its word.
///
///     x_i = W [y_{i-1}; t_{i-1}] = W_y y_{i-1} + F t_{i-1},  t_0 = 0       Luong et al. 2015, §3.3, with t = h̃
///
/// It takes any output; the paper's is `attentional`. Readouts are then computed step by step, where they otherwise are
/// one product for all steps. Ours: in training, dropout acts on t_i once, before both of its readers.
template <class Output, class Matrix>
struct fed {
    Output of;
    Matrix F;  // [L,G] from the readout to the cell

    /// What the output layer inside reads; the state has been fed already.
    auto read(const tensor auto& s, const tensor auto& y, const tensor auto& c) const { return of.read(s, y, c); }

    static auto parameters(auto& self, auto&& visit)
    {
        auto of = Output::parameters(self.of, visit);
        return output::fed{std::move(of), visit("F", self.F)};
    }
};
template <class Output, class Matrix>
fed(Output, Matrix) -> fed<Output, Matrix>;

/// The sizes that these policies are made for.
struct sizes {
    std::size_t vocabulary = 0;  // V
    std::size_t word = 0;        // E
    std::size_t hidden = 0;      // H
    std::size_t context = 0;     // D
    std::size_t gates = 0;       // G of the cell's projected input
    std::size_t readout = 0;     // L; output::linear has H
};

/// Makers, for decoders that are made new.
struct new_maxout {
    template <class T>
    auto make(random_source& random, const sizes& n) const
    {
        return maxout{nn::glorot<T>(random, n.hidden, 2 * n.readout),  nn::glorot<T>(random, n.word, 2 * n.readout),
                      nn::glorot<T>(random, n.context, 2 * n.readout), nn::zeros<T>(2 * n.readout),
                      nn::glorot<T>(random, n.readout, n.vocabulary),  nn::zeros<T>(n.vocabulary)};
    }
};
/// Makes linear output layers.
struct new_linear {
    template <class T>
    auto make(random_source& random, const sizes& n) const
    {
        return linear{nn::glorot<T>(random, n.hidden, n.vocabulary), nn::zeros<T>(n.vocabulary)};
    }
};
/// Makes output layers with a hidden one of `readout` numbers.
struct new_two_layers {
    template <class T>
    auto make(random_source& random, const sizes& n) const
    {
        return two_layers{nn::glorot<T>(random, n.hidden, n.readout),     nn::glorot<T>(random, n.word, n.readout),
                          nn::glorot<T>(random, n.context, n.readout),    nn::zeros<T>(n.readout),
                          nn::glorot<T>(random, n.readout, n.vocabulary), nn::zeros<T>(n.vocabulary)};
    }
};
/// Makes attentional output layers: tanh(W_c [c; h]) of `readout` numbers before the words.
struct new_attentional {
    template <class T>
    auto make(random_source& random, const sizes& n) const
    {
        return attentional{nn::glorot<T>(random, n.context + n.hidden, n.readout),
                           nn::glorot<T>(random, n.readout, n.vocabulary), nn::zeros<T>(n.vocabulary)};
    }
};
/// Makes what `of` makes, with input feeding around it.
template <class Outputs = new_attentional>
struct new_fed {
    Outputs of{};

    template <class T>
    auto make(random_source& random, const sizes& n) const
    {
        auto made = of.template make<T>(random, n);
        const std::size_t L = shape_of(made.W_o)[0];
        return fed{std::move(made), nn::glorot<T>(random, L, n.gates)};
    }
};

}  // namespace heed::seq2seq::output
