// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/gemm/weight_panels.hpp>
#include <heed/kernels/recurrent.hpp>
#include <heed/seq2seq/decoder.hpp>

/// Packs a model's weights for searches: computes `decoder::advance` and the output layer with fewer products.
namespace heed::inline HEED_TARGET::seq2seq {

namespace detail {

/// Can a matrix multiply the values, once per source word, instead of the context? Only if the combiner is linear and
/// nothing except the decoder reads the context.
template <class Attention>
inline constexpr bool matrix_may_come_first = false;
template <class Score, class Normalize, class Combine>
    requires(combiner_traits_of<Combine>().linear)
inline constexpr bool matrix_may_come_first<attention<Score, Normalize, Combine>> =
    !score::over::reads_context<Score>();

/// Lists the matrices of a model.
struct matrices_look {
    kernels::int8_weights& to;

    void operator()(const std::string&, const tensor auto& x) const
    {
        if constexpr (rank_of<decltype(x)> == 2) to.add(view_of(x).data, shape_of(x)[0], shape_of(x)[1]);
    }
};

/// Whether heed can pack the products of this cell or readout.
template <class Part>
inline constexpr bool packable_part = false;
template <class Matrix, class Vector>
inline constexpr bool packable_part<nn::gru<Matrix, Vector>> = true;
template <class Matrix, class Vector>
inline constexpr bool packable_part<nn::lstm<Matrix, Vector>> = true;
template <class Matrix, class Vector>
inline constexpr bool packable_part<output::maxout<Matrix, Vector>> = true;
template <class Matrix, class Vector>
inline constexpr bool packable_part<output::linear<Matrix, Vector>> = true;

/// Whether heed can pack the products of a model's decoder: its query is the previous state, and its parts are
/// packable.
template <class Model>
inline constexpr bool packable = false;
template <class Attention, class Matrix, class Cell, class Start, class Readout>
inline constexpr bool packable<decoder<Attention, Matrix, Cell, query_from::previous_state<Matrix>, Start, Readout>> =
    packable_part<Cell>&& packable_part<Readout>;
template <class Model>
    requires requires(const Model& model) { model.decoder; }
inline constexpr bool packable<Model> = packable<std::remove_cvref_t<decltype(std::declval<const Model&>().decoder)>>;

}  // namespace detail

using kernels::weight_numbers;

/// The output layer of a `packed` model.
template <class T>
struct output_panels {
    kernels::weight_panels<T> weights;
    std::vector<T> bias;  // [panels · width], -inf after the last word

    /// From W [L,V] and b [V].
    void pack(std::size_t L, std::size_t V, const T* W, const T* b, weight_numbers as = weight_numbers::full)
    {
        weights.pack(L, V, W, V, as);
        bias.assign(weights.columns_of_panels(), -std::numeric_limits<T>::infinity());
        std::copy_n(b, V, bias.begin());
    }
};

/// The state of a decoder's cell as plain rows [R,H]; a GRU has no second part.
template <class T>
struct cell_rows {
    T* hidden;
    T* cell = nullptr;
};

/// The decoder of a `packed` model.
///
///     x_i = [W E y + b ; V_o E y + b_o] + [C ; C_o] c_i     the first term is read from a table of all words
///     s_i = GRU(x_i, s_{i-1}) or LSTM(x_i, s_{i-1}),  t_i = maxout(x_i + U_o s_i), or s_i itself
///
/// Equals seq2seq::decoder up to the order of sums. G: 3H for a GRU, 4H for an LSTM. 2L is 0 if the readout is s_i
/// itself.
template <class T>
struct decoder_panels {
    std::size_t hidden = 0, width = 0, pairs = 0;                  // H, G + 2L, 2L
    std::vector<T> words;                                          // [V,G+2L]
    std::vector<T> from_context;                                   // [D,G+2L] C and C_o side by side
    kernels::weight_panels<T> context, gates, candidate, readout;  // the candidate is a GRU's

    /// Packs the matrices of a decoder.
    void pack(const auto& d, weight_numbers as = weight_numbers::full)
    {
        constexpr bool is_maxout = requires { d.readout.U_o; };
        constexpr bool is_gru = requires { d.cell.U_h; };
        hidden = shape_of(d.cell.U)[0];
        const std::size_t E = shape_of(d.embedding)[1];
        const auto [D, G] = shape_of(d.asks.C);
        if constexpr (is_maxout) pairs = shape_of(d.readout.U_o)[1];
        width = G + pairs;
        const std::size_t rows = shape_of(d.embedding)[0];
        std::vector<T> from_word(E * width);
        from_context.resize(D * width);
        words.resize(rows * width);
        put(E, G, view_of(d.cell.W).data, G, from_word.data());
        put(D, G, view_of(d.asks.C).data, G, from_context.data());
        put(rows, G, view_of(d.cell.b).data, 0, words.data());  // the same row for every word
        if constexpr (is_maxout) {
            put(E, pairs, view_of(d.readout.V_o).data, pairs, from_word.data() + G);
            put(D, pairs, view_of(d.readout.C_o).data, pairs, from_context.data() + G);
            put(rows, pairs, view_of(d.readout.b_o).data, 0, words.data() + G);
            readout.pack(hidden, pairs, view_of(d.readout.U_o).data, pairs, as);
        }
        if (as == weight_numbers::int8) {
            kernels::weight_panels<T> by_word;
            by_word.pack(E, width, from_word.data(), width, as);
            by_word.multiply(rows, view_of(d.embedding).data, E, words.data(), width, true);
        } else {
            const batch_invariant guard;  // same bits, with or without a guard in the caller
            blas::gemm(blas::op::plain, blas::op::plain, rows, width, E, view_of(d.embedding).data,
                       static_cast<const T*>(from_word.data()), T(1), words.data());
        }
        context.pack(D, width, from_context.data(), width, as);
        const std::size_t U_columns = shape_of(d.cell.U)[1];
        gates.pack(hidden, U_columns, view_of(d.cell.U).data, U_columns, as);
        if constexpr (is_gru) candidate.pack(hidden, hidden, view_of(d.cell.U_h).data, hidden, as);
    }

    /// The next state [R,H] and the readout [R,L] from the context [R,D] or, if `multiplied`, from its product with
    /// [C ; C_o], [R,G+2L]. Throws heed::error for a word without an embedding.
    void advance(const word_ids& previous, const T* seen, bool multiplied, cell_rows<const T> state, cell_rows<T> next,
                 T* t) const
    {
        const std::size_t R = previous.batch, H = hidden, G = width - pairs;
        scratch here;
        T* const x = here.take<T>(R * width);
        for (std::size_t r = 0; r < R; ++r) {
            if (previous.ids[r] >= vocabulary_of_input()) {
                throw error("decoding: word " + std::to_string(previous.ids[r]) + " of a table of " +
                            counted(vocabulary_of_input(), "embedding") + "; ids count from 0");
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
        step(R, x, state, next);
        if (pairs == 0) {
            std::copy_n(next.hidden, R * H, t);
            return;
        }
        readout.multiply(R, next.hidden, H, x + G, width, true);
        const std::size_t L = readout_size();
        for (std::size_t r = 0; r < R; ++r) {
            const T* both = x + r * width + G;
            for (std::size_t l = 0; l < L; ++l) t[r * L + l] = std::max(both[2 * l], both[2 * l + 1]);
        }
    }

    /// The size of the input vocabulary.
    std::size_t vocabulary_of_input() const { return width == 0 ? 0 : words.size() / width; }
    std::size_t readout_size() const { return pairs == 0 ? hidden : pairs / 2; }  // L

private:
    void step(std::size_t R, const T* x, cell_rows<const T> state, cell_rows<T> next) const
    {
        const std::size_t H = hidden, columns = state.cell == nullptr ? 2 * H : 4 * H;
        scratch here;
        T* const recurrent = here.take<T>(R * columns);
        T* const saved = here.take<T>(R * (columns + H));
        gates.multiply(R, state.hidden, H, recurrent, columns, false);
        if (state.cell != nullptr)
            return kernels::lstm_forward({R, H, x, state.hidden, state.cell, nullptr, 0, width},
                                         static_cast<const T*>(recurrent), saved, next.hidden, next.cell);
        T* const reset = here.take<T>(R * H);
        const kernels::gru_step<T> of_gru{R, H, x, width, state.hidden};
        kernels::gru_gates(of_gru, recurrent, saved, reset);
        candidate.multiply(R, reset, H, recurrent, H, false);
        kernels::gru_blend(of_gru, recurrent, saved, next.hidden);
    }

    /// Copies rows of n numbers, `stride` apart, to rows of `width`.
    void put(std::size_t rows, std::size_t n, const T* from, std::size_t stride, T* to) const
    {
        for (std::size_t r = 0; r < rows; ++r) std::copy_n(from + r * stride, n, to + r * width);
    }
};

/// A model packed for searching many sentences: `greedy`, `beam`, `force` and `decode` accept it instead of the model.
/// The model must outlive it and stay unchanged. The output layer of every model is packed. For a decoder with
/// query_from::previous_state, nn::gru or nn::lstm, and output::maxout or output::linear, all products are packed,
/// including those with the embeddings of the whole vocabulary: V · (G + 2L) numbers.
///
///     const seq2seq::packed<float, decltype(model)> fast(model);
///     for (batch …) seq2seq::beam<float>(fast, batch);
///
/// With weight_numbers::int8, all products with the model's matrices are in 8 bits; this pays off if
/// kernels::int8_is_fast().
template <class T, class Model>
class packed {
public:
    explicit packed(const Model& model, weight_numbers as = weight_numbers::full) : model_(&model)
    {
        const auto last = model.output();
        output_.pack(shape_of(last.W)[0], shape_of(last.W)[1], view_of(last.W).data, view_of(last.b).data, as);
        if constexpr (detail::packable<Model>) decoder_.pack(model.decoder, as);
        if constexpr (std::is_same_v<T, float> && parameterized<const Model>) {
            if (as == weight_numbers::int8) {
                int8_ = std::make_unique<kernels::int8_weights>();
                for_each_parameter(model, detail::matrices_look{*int8_});
            }
        }
    }
    explicit packed(const Model&&, weight_numbers = weight_numbers::full) = delete;

    const Model& model() const { return *model_; }
    const output_panels<T>& output() const { return output_; }
    const decoder_panels<T>& decoder() const { return decoder_; }
    /// The model's matrices in 8 bits, for products that are not packed above; null without 8 bits.
    const kernels::int8_weights* int8() const { return int8_.get(); }

private:
    const Model* model_;
    output_panels<T> output_;
    decoder_panels<T> decoder_;  // empty unless the decoder is packable
    std::unique_ptr<kernels::int8_weights> int8_;
};

}  // namespace heed::inline HEED_TARGET::seq2seq
