// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/family.hpp>
#include <heed/nn/factory.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/rows.hpp>
#include <heed/seq2seq/encoder.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y_i = max(x_2i, x_2i+1): x [...,2N] -> [...,N]              Goodfellow et al. 2013; Bahdanau et al. 2015, A.2.2
///     ∂x of the larger one += ∂y_i; of the first one if they are equal
struct maxout_op : operation<maxout_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x) { return detail::half_of("maxout", x.shape, "pairs of neighbors"); }

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

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::seq2seq {

/// The sizes of a recurrent decoder, for the factories of its parts.
struct decoder_sizes {
    std::size_t vocabulary = 0;  // V
    std::size_t embedding = 0;   // E
    std::size_t hidden = 0;      // H
    std::size_t context = 0;     // D
    std::size_t readout = 0;     // L; H for output::linear
    std::size_t gates = 0;       // G of the cell's projected input; set by make_decoder
};

/// The sizes, with the factory of the decoder's cells.
template <class Cells>
struct decoder_parts : decoder_sizes {
    Cells cells;
};
template <class Cells>
decoder_parts(decoder_sizes, Cells) -> decoder_parts<Cells>;

/// Which state of a recurrent decoder is the query, and where the context goes: a policy of seq2seq::decoder.
///
///     policy(cell, input, before, drop, attend)    a `queried_step`
///
/// input [B,G] is the previous word's contribution to the cell, `before` is s_{i-1}, attend(s) attends with a query
/// from s.
namespace query_from {

/// A step of a decoder: its next state, and the attention's result.
template <class State, class Seen>
struct queried_step {
    State state;
    Seen seen;
};
template <class State, class Seen>
queried_step(State, Seen) -> queried_step<State, Seen>;

/// The query is the state before the word, and the cell reads the context.
///
///     c_i = attention(s_{i-1}, h),  s_i = f(s_{i-1}, [E y_{i-1}; c_i])      Bahdanau et al. 2015; Choi et al. 2018
template <class Matrix>
struct previous_state {
    Matrix C;  // [D,G] from the context to the cell; G = 3H of a GRU, 4H of an LSTM

    auto operator()(const auto& cell, const tensor auto& input, const auto& before, const nn::dropout& drop,
                    const auto& attend) const
    {
        auto seen = attend(nn::output_of(before));
        auto next = nn::step_of(cell, ops::addmm(input, seen.context, C), before, drop);
        return queried_step{std::move(next), std::move(seen)};
    }

    static auto parameters(auto& self, auto&& visit) { return query_from::previous_state{visit("C", self.C)}; }
};
template <class Matrix>
previous_state(Matrix) -> previous_state<Matrix>;

/// The query is an intermediate state that has read the word; a second cell computes the next state from it.
///
///     s'_i = u(s_{i-1}, E y_{i-1}),  c_i = attention(s'_i, h),  s_i = q(s'_i, c_i)
///                                             Sankaran et al. 2016, eq. 2 and 3: the conditional GRU of dl4mt
///
/// u is the decoder's cell; both cells share one state.
template <class Cell>
struct intermediate_state {
    Cell second;  // q, from the context

    auto operator()(const auto& cell, const tensor auto& input, const auto& before, const nn::dropout& drop,
                    const auto& attend) const  // input [B,G] of u
    {
        const auto between = nn::step_of(cell, input, before, drop);
        auto seen = attend(nn::output_of(between));
        auto next = nn::step_of(second, nn::project_of(second, seen.context), between, drop);
        return queried_step{std::move(next), std::move(seen)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return query_from::intermediate_state{visit("second", self.second)};
    }
};
template <class Cell>
intermediate_state(Cell) -> intermediate_state<Cell>;

/// The query is the state after the word. The context reaches the next step only through input feeding.
///
///     s_i = f(s_{i-1}, E y_{i-1}),  c_i = attention(s_i, h)          Luong et al. 2015, §3
struct current_state {
    auto operator()(const auto& cell, const tensor auto& input, const auto& before, const nn::dropout& drop,
                    const auto& attend) const  // input [B,G] of f
    {
        auto next = nn::step_of(cell, input, before, drop);
        auto seen = attend(nn::output_of(next));
        return queried_step{std::move(next), std::move(seen)};
    }

    static auto parameters(auto&, auto&&) { return query_from::current_state{}; }
};

/// Makes a previous_state.
struct previous_state_factory {
    auto operator()(const auto& init, const decoder_sizes& n) const
    {
        return previous_state{init.glorot(n.context, n.gates)};
    }
};
/// Makes an intermediate_state whose second cell has the type of the decoder's cell.
struct intermediate_state_factory {
    template <class Cells>
    auto operator()(const auto& init, const decoder_parts<Cells>& n) const
    {
        return intermediate_state{nn::make_part(n.cells, init, nn::cell_sizes{n.context, n.hidden})};
    }
};
}  // namespace query_from

/// The initial state of a recurrent decoder: a policy. policy(cell, source) returns a state of the cell.
namespace initial_state {

/// A layer applied to the encoder's `start`.
///
///     s_0 = tanh(W_s ←h_1 + b_s)              Bahdanau et al. 2015, appendix A.2.2
///
/// Deviation: the bias. For an LSTM, s_0 is the output, and the cell is 0; for stacked cells, it is the output of every
/// layer.
template <class Matrix, class Vector>
struct tanh_layer {
    Matrix W_s;  // [H,H]
    Vector b_s;  // [H]

    auto operator()(const auto& cell, const auto& source) const
    {
        return nn::begin_of(cell, ops::tanh(ops::linear(source.start, W_s, b_s)));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return initial_state::tanh_layer{visit("W_s", self.W_s), visit("b_s", self.b_s)};
    }
};
template <class Matrix, class Vector>
tanh_layer(Matrix, Vector) -> tanh_layer<Matrix, Vector>;

/// The encoder's last state, for all layers: encoder and decoder have the same type of cell.
///
///     s_0 = h_T                               Sutskever et al. 2014, §2; Luong et al. 2015
struct last_state {
    auto operator()(const auto& cell, const auto& source) const
    {
        static_assert(!std::is_same_v<std::remove_cvref_t<decltype(source.last)>, nothing>,
                      "heed: initial_state::last_state needs an encoder that returns its last state, such as "
                      "forward_encoder; for other encoders use initial_state::tanh_layer");
        // The decoder may be on a tape although the encoder is not.
        return nn::map_state(source.last, [&](const auto& x) { return same_family(nn::biases_of(cell), x); });
    }

    static auto parameters(auto&, auto&&) { return initial_state::last_state{}; }
};

/// Makes a tanh_layer.
struct tanh_layer_factory {
    auto operator()(const auto& init, const decoder_sizes& n) const
    {
        return tanh_layer{init.glorot(n.hidden, n.hidden), init.zeros(n.hidden)};
    }
};

}  // namespace initial_state

/// The input of the last layer, computed from a recurrent decoder's state s [H], the previous word y [E] and the
/// context c [D]: a policy.
///
///     policy.read(s, y, c)    the readout t [...,L] of one step ([B,.]) or of all steps ([S,B,.])
///     policy.W_o, policy.b    the last layer: the scores of the words are t W_o + b
namespace output {

/// t = maxout(U_o s_i + V_o y_{i-1} + C_o c_i + b_o)           Bahdanau et al. 2015, appendix A.2.2
///
/// Deviations: it reads s_i instead of the appendix's s_{i-1}, as the authors' code does; biases.
template <class Matrix, class Vector>
struct maxout {
    Matrix U_o;  // [H,2L]
    Matrix V_o;  // [E,2L]
    Matrix C_o;  // [D,2L]
    Vector b_o;  // [2L]
    Matrix W_o;  // [L,V]
    Vector b;    // [V]

    auto read(const tensor auto& s, const tensor auto& y, const tensor auto& c) const  // t
    {
        return ops::maxout(ops::addmm(ops::addmm(ops::linear(y, V_o, b_o), s, U_o), c, C_o));
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

    auto read(const tensor auto& s, const tensor auto&, const tensor auto&) const { return s; }  // the state itself

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

    auto read(const tensor auto& s, const tensor auto& y, const tensor auto& c) const  // t
    {
        return ops::tanh(ops::addmm(ops::addmm(ops::linear(y, V_o, b_o), s, U_o), c, C_o));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return output::two_layers{visit("U_o", self.U_o), visit("V_o", self.V_o), visit("C_o", self.C_o),
                                  visit("b_o", self.b_o), visit("W_o", self.W_o), visit("b", self.b)};
    }
};
template <class Matrix, class Vector>
two_layers(Matrix, Matrix, Matrix, Vector, Matrix, Vector) -> two_layers<Matrix, Vector>;

/// The attentional vector: h̃_i = tanh(W_c [c_i; s_i]),  p(y_i) = softmax(W_o h̃_i + b)
///                                             Luong et al. 2015, eq. 5 and 6; the bias b is an addition
template <class Matrix, class Vector>
struct attentional {
    Matrix W_c;  // [D+H,L]
    Matrix W_o;  // [L,V]
    Vector b;    // [V]

    auto read(const tensor auto& s, const tensor auto&, const tensor auto& c) const  // h̃
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

/// Input feeding: the cell of the next step reads the readout in addition to its word.
///
///     x_i = W [y_{i-1}; t_{i-1}] = W_y y_{i-1} + F t_{i-1},  t_0 = 0       Luong et al. 2015, §3.3, with t = h̃
///
/// For any output; the paper's is `attentional`. heed's choice: dropout is applied to t_i once, before both uses.
template <class Output, class Matrix>
struct input_feeding {
    Output of;
    Matrix F;  // [L,G] from the readout to the cell

    auto read(const tensor auto& s, const tensor auto& y, const tensor auto& c) const { return of.read(s, y, c); }  // t

    static auto parameters(auto& self, auto&& visit)
    {
        auto of = Output::parameters(self.of, visit);
        return output::input_feeding{std::move(of), visit("F", self.F)};
    }
};
template <class Output, class Matrix>
input_feeding(Output, Matrix) -> input_feeding<Output, Matrix>;

/// Makes maxout output layers.
struct maxout_factory {
    auto operator()(const auto& init, const decoder_sizes& n) const
    {
        return maxout{init.glorot(n.hidden, 2 * n.readout),  init.glorot(n.embedding, 2 * n.readout),
                      init.glorot(n.context, 2 * n.readout), init.zeros(2 * n.readout),
                      init.glorot(n.readout, n.vocabulary),  init.zeros(n.vocabulary)};
    }
};
/// Makes linear output layers.
struct linear_factory {
    auto operator()(const auto& init, const decoder_sizes& n) const
    {
        return linear{init.glorot(n.hidden, n.vocabulary), init.zeros(n.vocabulary)};
    }
};
/// Makes output layers with a hidden layer of size `readout`.
struct two_layers_factory {
    auto operator()(const auto& init, const decoder_sizes& n) const
    {
        return two_layers{init.glorot(n.hidden, n.readout),     init.glorot(n.embedding, n.readout),
                          init.glorot(n.context, n.readout),    init.zeros(n.readout),
                          init.glorot(n.readout, n.vocabulary), init.zeros(n.vocabulary)};
    }
};
/// Makes attentional output layers: tanh(W_c [c; h]) of size `readout` before the words.
struct attentional_factory {
    auto operator()(const auto& init, const decoder_sizes& n) const
    {
        return attentional{init.glorot(n.context + n.hidden, n.readout), init.glorot(n.readout, n.vocabulary),
                           init.zeros(n.vocabulary)};
    }
};
/// Makes the output of another factory and adds input feeding.
template <class Output = attentional_factory>
struct input_feeding_factory {
    Output of{};

    auto operator()(const auto& init, const auto& n) const
    {
        auto made = nn::make_part(of, init, n);
        const std::size_t L = shape_of(made.W_o)[0];
        return input_feeding{std::move(made), init.glorot(L, n.gates)};
    }
};
template <class Output = attentional_factory>
input_feeding_factory(Output = {}) -> input_feeding_factory<Output>;

}  // namespace output

/// The factories of a recurrent system's parts around its attention (nn/factory.hpp). The defaults are RNNsearch's;
/// with_encoder, with_cells, with_embeddings, with_query_from, with_start and with_readout replace them:
///
///     parts{}.with_cells(nn::lstm_factory{}).with_readout(output::linear_factory{})
template <class Encoder = bidirectional_encoder_factory, class Cells = nn::gru_factory,
          class SourceWords = embedding::table_factory, class TargetWords = embedding::table_factory,
          class Asks = query_from::previous_state_factory, class Start = initial_state::tanh_layer_factory,
          class Readout = output::maxout_factory>
struct parts {
    Encoder encoder{};           // width(hidden) returns D of an annotation; without it, sizes::width does
    Cells cells{};               // of encoder and decoder
    SourceWords source_words{};  // the embeddings of words or features
    TargetWords target_words{};
    Asks asks{};
    Start start{};
    Readout readout{};

    auto with_encoder(const auto& other) const
    {
        return of(other, cells, source_words, target_words, asks, start, readout);
    }
    auto with_cells(const auto& other) const
    {
        return of(encoder, other, source_words, target_words, asks, start, readout);
    }
    template <class Target = embedding::table_factory>
    auto with_embeddings(const auto& source, const Target& target = {}) const  // a table of target words by default
    {
        return of(encoder, cells, source, target, asks, start, readout);
    }
    auto with_query_from(const auto& other) const
    {
        return of(encoder, cells, source_words, target_words, other, start, readout);
    }
    auto with_start(const auto& other) const
    {
        return of(encoder, cells, source_words, target_words, asks, other, readout);
    }
    auto with_readout(const auto& other) const
    {
        return of(encoder, cells, source_words, target_words, asks, start, other);
    }

private:
    template <class... Part>
    static parts<Part...> of(const Part&... part)
    {
        return {part...};
    }
};

}  // namespace heed::inline HEED_TARGET::seq2seq
