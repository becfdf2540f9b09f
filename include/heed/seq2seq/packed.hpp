// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/blas.hpp>
#include <heed/core/tensor.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/gru.hpp>
#include <heed/kernels/panels.hpp>
#include <heed/seq2seq/decoder.hpp>

/// A decoder's weights laid out for searching: the results of `decoder::advance` and its output layer in fewer
/// products.
namespace heed::seq2seq {

namespace detail {

/// Can a matrix that multiplies the context multiply the values instead, once per source word? Where the combiner
/// declares `static constexpr bool commutes_with_matrices = true;` and only the decoder reads the context.
template <class Attention>
inline constexpr bool matrix_may_come_first = false;
template <class Score, class Normalize, class Combine>
    requires requires { requires Combine::commutes_with_matrices; }
inline constexpr bool matrix_may_come_first<attention<Score, Normalize, Combine>> =
    !score::over::reads_context<Score>();

/// Whether the products of a decoder can be laid out: RNNsearch's, around nn::gru.
template <class Decoder>
inline constexpr bool packable = false;
template <class Attention, class Matrix, class Vector, class Start>
inline constexpr bool packable<decoder<Attention, Matrix, nn::gru<Matrix, Vector>, asks_with::previous_state<Matrix>,
                                       Start, output::maxout<Matrix, Vector>>> = true;

}  // namespace detail

/// What the decoder reads of the attention: the context [R,D], or its product with [C ; C_o], [R,3H+2L], where the
/// values were multiplied before they were summed.
enum class context_form { plain, multiplied };

/// The output layer's part of a `packed` model.
template <class T>
struct output_panels {
    kernels::panels<T> weights;
    std::vector<T> bias;  // [panels · width], -inf after the last word

    /// From W [L,V] and b [V].
    void pack(std::size_t L, std::size_t V, const T* W, const T* b)
    {
        weights.pack(L, V, W, V);
        bias.assign(weights.count() * kernels::panels<T>::width, -std::numeric_limits<T>::infinity());
        std::copy_n(b, V, bias.begin());
    }
};

/// The decoder's part of a `packed` model.
///
///     x_i = [W E y + b ; V_o E y + b_o] + [C ; C_o] c_i     the first summand from a table for the whole vocabulary
///     s_i = GRU(x_i, s_{i-1}),  t_i = maxout(x_i + U_o s_i)
///
/// These are the values that seq2seq::decoder computes, except that sums are rounded in another order.
template <class T>
struct decoder_panels {
    std::size_t hidden = 0, width = 0;  // H, 3H + 2L
    std::vector<T> words;               // [V,3H+2L]
    std::vector<T> from_context;        // [D,3H+2L] C beside C_o
    kernels::panels<T> context, gates, candidate, readout;

    template <class Decoder>
    void pack(const Decoder& d)
    {
        hidden = shape_of(d.cell.U_h)[0];
        const std::size_t E = shape_of(d.embedding)[1], D = shape_of(d.asks.C)[0], G = 3 * hidden;
        const std::size_t L2 = shape_of(d.readout.U_o)[1];
        width = G + L2;
        std::vector<T> from_word(E * width);
        from_context.resize(D * width);
        beside(E, G, view_of(d.cell.W).data, L2, view_of(d.readout.V_o).data, from_word.data());
        beside(D, G, view_of(d.asks.C).data, L2, view_of(d.readout.C_o).data, from_context.data());
        const std::size_t rows = shape_of(d.embedding)[0];
        words.resize(rows * width);
        for (std::size_t w = 0; w < rows; ++w) {
            T* to = std::copy_n(view_of(d.cell.b).data, G, words.data() + w * width);
            std::copy_n(view_of(d.readout.b_o).data, L2, to);
        }
        blas::gemm(blas::op::plain, blas::op::plain, rows, width, E, view_of(d.embedding).data,
                   static_cast<const T*>(from_word.data()), T(1), words.data());
        context.pack(D, width, from_context.data(), width);
        gates.pack(hidden, 2 * hidden, view_of(d.cell.U).data, 2 * hidden);
        candidate.pack(hidden, hidden, view_of(d.cell.U_h).data, hidden);
        readout.pack(hidden, L2, view_of(d.readout.U_o).data, L2);
    }

    /// Computes the next state [R,H] and the readout [R,L] from the attention's context.
    void advance(const word_ids& previous, const T* seen, context_form form, const T* state, T* next, T* t) const
    {
        const bool multiplied = form == context_form::multiplied;
        const std::size_t R = previous.batch, H = hidden;
        scratch here;
        T* const x = here.take<T>(R * width);
        for (std::size_t r = 0; r < R; ++r) {
            if (previous.ids[r] >= vocabulary_of_input()) {
                throw error("decoding: word " + std::to_string(previous.ids[r]) + " of a table of " +
                            std::to_string(vocabulary_of_input()) + " embeddings; ids count from 0");
            }
            const T* from = words.data() + previous.ids[r] * width;
            if (multiplied) {
                simd::transform(
                    width, x + r * width, [](auto a, auto b) { return a + b; }, from, seen + r * width);
            } else {
                std::copy_n(from, width, x + r * width);
            }
        }
        if (!multiplied) context.multiply(R, seen, context.rows(), x, width, true);
        T* const recurrent = here.take<T>(R * 2 * H);
        T* const saved = here.take<T>(R * 3 * H);
        T* const reset = here.take<T>(R * H);
        const kernels::gru_step<T> step{R, H, x, width, state};
        gates.multiply(R, state, H, recurrent, 2 * H, false);
        kernels::gru_gates(step, recurrent, saved, reset);
        candidate.multiply(R, reset, H, recurrent, H, false);
        kernels::gru_blend(step, recurrent, saved, next);
        readout.multiply(R, next, H, x + 3 * H, width, true);
        const std::size_t L = (width - 3 * H) / 2;
        for (std::size_t r = 0; r < R; ++r) {
            const T* pairs = x + r * width + 3 * H;
            for (std::size_t l = 0; l < L; ++l) t[r * L + l] = std::max(pairs[2 * l], pairs[2 * l + 1]);
        }
    }

    std::size_t vocabulary_of_input() const { return width == 0 ? 0 : words.size() / width; }

private:
    /// [A, B]: their rows side by side.
    static void beside(std::size_t rows, std::size_t n, const T* A, std::size_t m, const T* B, T* to)
    {
        for (std::size_t r = 0; r < rows; ++r) {
            to = std::copy_n(A + r * n, n, to);
            to = std::copy_n(B + r * m, m, to);
        }
    }
};

/// A model laid out for searching many sentences: `greedy`, `beam`, `force` and `decode` accept it in the model's place
/// and run faster. The model must stay alive and unchanged meanwhile. Of every model the output layer is laid out; of a
/// seq2seq::decoder around nn::gru, its other products, too, those with the embeddings of the whole vocabulary
/// included: V · (3H + 2L) numbers.
///
///     const seq2seq::packed<float, decltype(model)> fast(model);
///     for (batch …) seq2seq::beam<float>(fast, batch);
template <class T, class Model>
class packed {
public:
    explicit packed(const Model& model) : model_(&model)
    {
        const auto last = model.output();
        output_.pack(shape_of(last.W)[0], shape_of(last.W)[1], view_of(last.W).data, view_of(last.b).data);
        if constexpr (requires { requires detail::packable<std::remove_cvref_t<decltype(model.decoder)>>; })
            decoder_.pack(model.decoder);
    }
    explicit packed(const Model&&) = delete;

    const Model& model() const { return *model_; }
    const output_panels<T>& output() const { return output_; }
    const decoder_panels<T>& decoder() const { return decoder_; }

private:
    const Model* model_;
    output_panels<T> output_;
    decoder_panels<T> decoder_;  // empty unless the decoder is packable
};

}  // namespace heed::seq2seq
