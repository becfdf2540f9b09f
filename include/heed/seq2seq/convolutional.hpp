// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/mechanism_list.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/nn/gated_convolution.hpp>
#include <heed/nn/positions.hpp>
#include <heed/ops/operation.hpp>
#include <heed/seq2seq/translator.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y = x, with a scaled gradient, which is not the derivative: x [...] -> [...]            ∂x += factor · ∂y
struct scale_gradient_op : operation<scale_gradient_op> {
    template <tensor X>
    X operator()(const X& x, double factor) const
    {
        if constexpr (family_of<X>::rank == family_rank::taped) {
            if (factor != 1) return operation<scale_gradient_op>::operator()(x, factor);
        }
        return x;
    }

    static auto shape(const auto& x, double) { return x.shape; }

    template <class T, std::size_t N>
    static void forward(in<T, N> x, double, out<T, N> y)
    {
        std::copy_n(x.data, x.size(), y.data);
    }

    template <class T, std::size_t N>
    static void backward(in<T, N> x, double factor, in<T, N>, in<T, N> d_y, adjoint<T, N> d_x)
    {
        kernels::add_scaled(x.size(), d_x.data, static_cast<T>(factor), d_y.data);
    }
};
inline constexpr scale_gradient_op scale_gradient{};

}  // namespace heed::inline HEED_TARGET::ops

/// Convolutional sequence-to-sequence models: stacked convolutions, with attention in every layer of the decoder.
///
///     block     x ← √½ (x + GLU(conv(x)))                               encoder
///     layer     h = GLU(conv(x)),  c = attention(h, g),  x ← √½ (x + √½ (h + W_c c))   decoder
///
///                                             Gehring et al. 2017, section 3
///
/// Deviations, explained in docs/explanation/decisions.md: attention reads h before the residual is added, as in the
/// authors' code (equation 1 adds it first); no weight normalization.
namespace heed::inline HEED_TARGET::seq2seq {

/// The encoding of a batch by a convolutional encoder.
template <class Annotations>
struct convolved {
    Annotations annotations;  // [B,T,E] z: the keys
    Annotations values;       // [B,T,E] √(T/2) (z + e), with e the embedding of word and position
};
template <class Annotations>
convolved(Annotations, Annotations) -> convolved<Annotations>;

namespace detail {

inline constexpr double root_half = 0.70710678118654752440;

/// Whether an attention computes its own keys from annotations, so that layers cannot share a memory.
template <class Attention, class Annotations>
inline constexpr bool prepares = true;
template <class Attention, class Annotations>
    requires requires(const Attention& attention) { attention.score; }
inline constexpr bool prepares<Attention, Annotations> =
    hook::prepare<std::remove_cvref_t<decltype(std::declval<const Attention&>().score)>, const Annotations&>;

}  // namespace detail

/// The encoder of ConvS2S.
///
///     e_t = E x_t + P_t,  x = W_in e + b_in,  N blocks,  z = W_out x + b_out
///
/// Values are √(T/2) (z + e) for a sentence of T words; the paper scales the context instead. The gradient of z is
/// multiplied by `gradient_scale`, 1 / (2 · attentions) in section 3.4.
template <class Matrix, class Vector, class Positions, class Block, class Embedding = Matrix>
struct convolutional_encoder {
    Embedding embedding;  // [V,E], or embedding::projected or as_given, for features
    Positions positions;
    Matrix W_in;  // [E,H]
    Vector b_in;  // [H]
    std::vector<Block> blocks;
    Matrix W_out;  // [H,E]
    Vector b_out;  // [E]
    double gradient_scale = 1;

    /// z and √(T/2) (z + e), for words [T,B] or features [B,T,F]. Throws shape_error unless each row has a length that
    /// fits.
    auto encode(const auto& source, const nn::dropout& drop = {}) const
    {
        embedding::require_source("convolutional_encoder::encode", source);
        const auto rows = drop(positions(embedding::rows_of(embedding, source)));            // E x_t + P_t
        const auto e = ops::clear_padding(rows, source.real);                                // [B,T,E]
        auto x = ops::clear_ended(ops::linear(ops::swap_axes(e), W_in, b_in), source.real);  // [T,B,H]
        for (const Block& block : blocks) x = block.around(x, drop.time_major(x), source.real);
        auto z = ops::swap_axes(ops::scale_gradient(ops::linear(x, W_out, b_out), gradient_scale));  // [B,T,E]
        auto values = ops::multiply_per_position(ops::add(z, e), scales(source.real, e));            // [B,T,E]
        return convolved{std::move(z), std::move(values)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::convolutional_encoder{visit("embedding", self.embedding), visit("positions", self.positions),
                                              visit("W_in", self.W_in),           visit("b_in", self.b_in),
                                              visit("blocks", self.blocks),       visit("W_out", self.W_out),
                                              visit("b_out", self.b_out),         self.gradient_scale};
    }

private:
    /// √(T/2) of each sentence, for each dimension: [B,E].
    static auto scales(const lengths& real, const tensor auto& e)
    {
        const std::size_t E = shape_of(e)[2];
        using T = element_of<decltype(e)>;
        array<T, 2> all(shape_of_rank<2>{real.batch(), E});
        for (std::size_t i = 0; i < all.size(); ++i)
            all.data()[i] = static_cast<T>(std::sqrt(static_cast<double>(real[i / E]) / 2));
        return all;
    }
};
template <class Embedding, class Matrix, class Vector, class Positions, class Block>
convolutional_encoder(Embedding, Positions, Matrix, Vector, std::vector<Block>, Matrix, Vector, double = 1)
    -> convolutional_encoder<Matrix, Vector, Positions, Block, Embedding>;

/// A layer of the decoder of ConvS2S.
///
///     h = GLU(conv(x)),  c = attention(h, g),  x ← √½ x + ½ h + W_c c
///
/// The factor ½ of W_c c is in the initial W_c. The query is h, with √½ g for a score that reads the previous word.
template <class Convolution, class Attention, class Matrix>
struct convolutional_layer {
    Convolution convolution;  // of H
    Attention attention;      // its query is h [.,H]
    Matrix W_c;               // [C,H] from the context

    using attention_type = Attention;

    /// √½ x + ½ h + W_c c.
    auto joined(const tensor auto& x, const tensor auto& h, const tensor auto& c) const
    {
        return ops::addmm(ops::scaled_sum(x, h, detail::root_half, 0.5), c, W_c);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::convolutional_layer{visit("convolution", self.convolution), visit("attention", self.attention),
                                            visit("W_c", self.W_c)};
    }
};
template <class Convolution, class Attention, class Matrix>
convolutional_layer(Convolution, Attention, Matrix) -> convolutional_layer<Convolution, Attention, Matrix>;

/// The state of a convolutional decoder between words, for each row and layer.
template <class Past, class Attention>
struct convolutional_state {
    std::vector<Past> past;            // [R,(k-1)·H] the last k-1 inputs of each layer
    std::vector<Attention> attention;  // the state of each layer's attention
    std::size_t step = 0;              // the number of words read

    auto map(const auto& f) const
    {
        return seq2seq::convolutional_state{
            heed::detail::each_of(past, [&](std::size_t i) { return f(past[i]); }),
            heed::detail::each_of(attention, [&](std::size_t i) { return attention[i].map(f); }), step};
    }
};
template <class Past, class Attention>
convolutional_state(std::vector<Past>, std::vector<Attention>, std::size_t) -> convolutional_state<Past, Attention>;

/// The decoder of ConvS2S.
///
///     g_i = E y_{i-1} + P_i,  x = W_in g + b_in,  N layers,  t = W_out x + b_out
///     p(y_i) = softmax(W_o t_i + b)           Gehring et al. 2017, sections 3.1 to 3.3
///
/// Convolutions read only earlier words: each layer stores k-1 inputs. Throws heed::error if there are no layers.
template <class Matrix, class Vector, class Positions, class Layer>
struct convolutional_decoder {
    Matrix embedding;  // [V,E]
    Positions positions;
    Matrix W_in;  // [E,H]
    Vector b_in;  // [H]
    std::vector<Layer> layers;
    Matrix W_out;  // [H,L]
    Vector b_out;  // [L]
    Matrix W_o;    // [L,V]
    Vector b;      // [V]

    /// The memories of all layers, and the state before the first word.
    auto open(const auto& source, const lengths& real) const
    {
        using heed::detail::each_of;
        auto memory = memories(source, real);
        auto past = each_of(layers, [&](std::size_t l) {
            const auto& convolution = layers[l].convolution;
            const shape_of_rank<2> shape{real.batch(), (convolution.width() - 1) * convolution.size()};
            return constant_like(W_in, shape, 0.0);
        });
        auto attention = each_of(layers, [&](std::size_t l) { return layers[l].attention.start(memory.of[l]); });
        return opening{std::move(memory), convolutional_state{std::move(past), std::move(attention), 0}};
    }

    /// Σ −log p(y_i) over the batch (teacher forcing). `only`: restricts the vocabulary to these words, see
    /// decoder::loss.
    template <class T>
    auto loss(const auto& source, const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {},
              const std::vector<std::uint32_t>* only = nullptr) const
    {
        return detail::cross_entropy(readouts(source, batch, drop), output(), batch.targets, smoothing, only);
    }

    /// The input of the output layer at every step of the batch (teacher forcing): [S,B,E].
    template <class T>
    auto readouts(const auto& source, const training_batch<T>& batch, const nn::dropout& drop = {}) const
    {
        const auto memory = memories(source, batch.source.real);
        return teacher_force(batch, drop, [&](std::size_t l, const auto& asked) {  // [B,S,.] -> [B,S,C]
            return layers[l].attention(memory.of[l], asked);
        });
    }

    /// Like loss, but returns a `teacher_forced`, computed word by word, with the mean weights of the layers and no
    /// last state.
    template <class T>
    auto follow(const auto& source, const training_batch<T>& batch, T smoothing = 0, const nn::dropout& drop = {},
                const std::vector<std::uint32_t>* only = nullptr) const
    {
        const auto begun = open(source, batch.source.real);
        const std::size_t S = batch.previous.steps;
        using matrix = std::remove_cvref_t<decltype(begun.state.past[0])>;
        std::vector<matrix> weights(S);  // [B,T] each
        const auto readout = teacher_force(batch, drop, [&](std::size_t l, const auto& asked) {
            auto state = begun.state.attention[l];
            std::vector<matrix> contexts;  // [B,C] each
            for (std::size_t s = 0; s < S; ++s) {
                auto seen = layers[l].attention.step(begun.memory.of[l], heed::detail::part_of_step(asked, s), state);
                const auto looked = ops::scale(detail::weights_per_position<attention_type>(seen.weights),
                                               1 / static_cast<double>(layers.size()));
                weights[s] = l == 0 ? looked : ops::add(weights[s], looked);
                contexts.push_back(std::move(seen.context));
                state = std::move(seen.state);
            }
            return ops::swap_axes(ops::stack(contexts));
        });
        return teacher_forced{detail::cross_entropy_per_word(readout, output(), batch.targets, smoothing, only),
                              std::move(weights), no_state{}};
    }

    auto advance(const auto& memory, const auto& state, const word_ids& previous) const
    {
        const auto y = positions(ops::swap_axes(ops::lookup(embedding, previous)), state.step);  // [R,1,E]
        const auto g = ops::step_of(y, std::size_t{0});                                          // [R,E]
        const auto words = as_queried(g);
        auto x = ops::linear(g, W_in, b_in);  // [R,H]
        decltype(x) weights;                  // [R,T]
        std::remove_cvref_t<decltype(state)> after{{}, {}, state.step + 1};
        for (std::size_t l = 0; l < layers.size(); ++l) {
            const auto h = layers[l].convolution.step(state.past[l], x);  // [R,H]
            auto seen = layers[l].attention.step(memory.of[l], query(layers[l], h, words), state.attention[l]);
            const auto looked = detail::weights_per_position<attention_type>(seen.weights);
            weights = l == 0 ? looked : ops::add(weights, looked);
            after.past.push_back(ops::slide(state.past[l], x));
            after.attention.push_back(std::move(seen.state));
            x = layers[l].joined(x, h, seen.context);
        }
        return advanced{ops::stack(std::vector{ops::linear(x, W_out, b_out)}), std::move(after),
                        seen_weights{ops::scale(weights, 1 / static_cast<double>(layers.size()))}};
    }

    output_layer<const Matrix&, const Vector&> output() const { return {W_o, b}; }  // of the words

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::convolutional_decoder{visit("embedding", self.embedding),
                                              visit("positions", self.positions),
                                              visit("W_in", self.W_in),
                                              visit("b_in", self.b_in),
                                              visit("layers", self.layers),
                                              visit("W_out", self.W_out),
                                              visit("b_out", self.b_out),
                                              visit("W_o", self.W_o),
                                              visit("b", self.b)};
    }

private:
    using attention_type = typename Layer::attention_type;

    auto memories(const auto& source, const lengths& real) const
    {
        heed::detail::require_some("convolutional_decoder: layers", layers.size());
        const auto memory_of = [&](std::size_t l) {
            if constexpr (requires { source.values; }) {
                return layers[l].attention.on(source.annotations, source.values, real);
            } else {
                return layers[l].attention.on(source.annotations, real);
            }
        };
        if constexpr (detail::prepares<attention_type, std::remove_cvref_t<decltype(source.annotations)>>) {
            return memory_list{heed::detail::each_of(layers, memory_of)};
        } else {
            return memory_list{std::vector(layers.size(), memory_of(0))};
        }
    }

    /// All words up to the readout [S,B,L]. look(l, queries [B,S,.]) returns the contexts [B,S,C] of layer l.
    auto teacher_force(const auto& batch, const nn::dropout& drop, const auto& look) const
    {
        const auto rows = drop(positions(ops::swap_axes(ops::lookup(embedding, batch.previous))));
        const auto g = ops::clear_padding(rows, batch.target_lengths());  // [B,S,E]
        const auto words = as_queried(g);
        auto x = ops::linear(ops::swap_axes(g), W_in, b_in);  // [S,B,H]
        for (std::size_t l = 0; l < layers.size(); ++l) {
            const auto h = layers[l].convolution.back(drop.time_major(x));                       // [S,B,H]
            const auto c = ops::swap_axes(look(l, query(layers[l], ops::swap_axes(h), words)));  // [S,B,C]
            x = layers[l].joined(x, h, c);
        }
        return drop.time_major(ops::linear(x, W_out, b_out));
    }

    template <tensor G>
    static auto as_queried(const G& g)
    {
        if constexpr (detail::reads_words<attention_type, G>) {
            return ops::scale(g, detail::root_half);
        } else {
            return nothing{};
        }
    }

    static auto query(const Layer& layer, const tensor auto& h, const auto& words)
    {
        return detail::query_of<attention_type>(h, detail::words_for(layer.attention, words));
    }
};
template <class Matrix, class Vector, class Positions, class Layer>
convolutional_decoder(Matrix, Positions, Matrix, Vector, std::vector<Layer>, Matrix, Vector, Matrix, Vector)
    -> convolutional_decoder<Matrix, Vector, Positions, Layer>;

/// The sizes of a convolutional translator.
struct convolutional_sizes {
    std::size_t source_vocabulary = 0, target_vocabulary = 0;
    std::size_t embedding = 256;  // E of words, positions, the encoder's results and the output layer's input
    std::size_t hidden = 256;     // H of the convolutions
    std::size_t encoder_layers = 4, decoder_layers = 3;
    std::size_t width = 3;       // of the convolutions, in words
    std::size_t longest = 1024;  // maximum sentence length of learned positions, including the end word
    double dropout = 0;          // the rate in training: the initial weights depend on it
};

/// A new encoder and decoder. The factory `attention` makes the attention of each decoder layer, with queries h [.,H]
/// and annotations [T,E]; `source_words` makes the embedding of source words or features.
///
/// Initial weights as in Gehring et al. 2017, section 3.5: normal, with variance 4p / n before gated linear units of n
/// inputs that are kept with probability p, else p / n; embeddings with deviation 0.1; biases 0.
template <class T, class Attention, class Positions = nn::learned_positions_factory,
          class SourceWords = embedding::table_factory>
auto make_convolutional(std::uint64_t seed, const convolutional_sizes& n, const Attention& attention,
                        const Positions& positions = {0.1}, const SourceWords& source_words = {})
{
    random_source random{seed, 0};
    const nn::initializers<T> init{random};
    const auto weights = [&](std::size_t inputs, std::size_t columns, double gain) {
        return init.gaussian(inputs, columns, std::sqrt(gain / static_cast<double>(inputs)));
    };
    const auto convolution = [&] {
        auto W = weights(n.width * n.hidden, 2 * n.hidden, 4 * (1 - n.dropout));
        return nn::gated_convolution{std::move(W), init.zeros(2 * n.hidden)};
    };
    auto words = nn::make_part(source_words, init, embedding::embedding_sizes{n.source_vocabulary, n.embedding});
    auto places = nn::make_part(positions, init, nn::position_sizes{n.longest, n.embedding});
    auto W_in = weights(n.embedding, n.hidden, 1 - n.dropout);
    std::vector<decltype(convolution())> blocks;
    for (std::size_t i = 0; i < n.encoder_layers; ++i) blocks.push_back(convolution());
    auto W_out = weights(n.hidden, n.embedding, 1);
    convolutional_encoder encoder{
        std::move(words),  std::move(places), std::move(W_in),         init.zeros(n.hidden),
        std::move(blocks), std::move(W_out),  init.zeros(n.embedding), 0.5 / static_cast<double>(n.decoder_layers)};

    auto target_words = init.gaussian(n.target_vocabulary, n.embedding, 0.1);
    auto target_places = nn::make_part(positions, init, nn::position_sizes{n.longest, n.embedding});
    auto target_W_in = weights(n.embedding, n.hidden, 1 - n.dropout);
    const auto make_layer = [&] {
        auto of_words = convolution();
        auto of_source = nn::make_part(attention, init, n);
        return convolutional_layer{std::move(of_words), std::move(of_source), weights(n.embedding, n.hidden, 0.25)};
    };
    std::vector<decltype(make_layer())> layers;
    for (std::size_t i = 0; i < n.decoder_layers; ++i) layers.push_back(make_layer());
    auto target_W_out = weights(n.hidden, n.embedding, 1);
    auto W_o = weights(n.embedding, n.target_vocabulary, 1 - n.dropout);
    convolutional_decoder decoder{std::move(target_words), std::move(target_places), std::move(target_W_in),
                                  init.zeros(n.hidden),    std::move(layers),        std::move(target_W_out),
                                  init.zeros(n.embedding), std::move(W_o),           init.zeros(n.target_vocabulary)};
    return translator{std::move(encoder), std::move(decoder)};
}

}  // namespace heed::inline HEED_TARGET::seq2seq
