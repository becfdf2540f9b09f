// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/core/mechanism_list.hpp>
#include <heed/nn/cells.hpp>
#include <heed/nn/convolution.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/recurrent.hpp>
#include <heed/seq2seq/model.hpp>

/// Image captioning: a convolutional encoder whose annotations are image regions, and a decoder that attends to them.
namespace heed::inline HEED_TARGET::seq2seq {

/// Convolutions with rectified units; an annotation is a region of the image.
///
///     F_0 = the pixels,  F_k = max(0, convolution_k(F_{k-1})),  a_(i,j) = F_K(i,j) + R_i + C_j
///
/// Xu et al. 2015, §3.1.1, use the feature maps of a network trained on ImageNet. heed trains the encoder together with
/// the decoder, and adds embeddings of the region's row and column.
template <class Matrix, class Vector>
struct picture_encoder {
    grid size;  // of the images
    std::vector<nn::convolution<Matrix, Vector>> layers;
    Matrix rows;     // [H',D] R
    Matrix columns;  // [W',D] C

    /// The grid of regions.
    grid regions() const
    {
        grid result = size;
        for (const auto& layer : layers) result = result.every(layer.stride);
        return result;
    }

    auto encode(const tensor auto& images) const  // [B,H·W,1] -> [B,T,D], T = H'·W'
    {
        auto x = ops::relu(layers.at(0)(images, size));
        grid of_x = size.every(layers[0].stride);
        for (std::size_t k = 1; k < layers.size(); ++k) {
            x = ops::relu(layers[k](x, of_x));
            of_x = of_x.every(layers[k].stride);
        }
        const std::size_t B = shape_of(x)[0];
        word_ids row_of(of_x.size(), B), column_of(of_x.size(), B);
        for (std::size_t t = 0; t < of_x.size(); ++t) {
            for (std::size_t b = 0; b < B; ++b) {
                row_of(t, b) = static_cast<std::uint32_t>(t / of_x.width);
                column_of(t, b) = static_cast<std::uint32_t>(t % of_x.width);
            }
        }
        const auto places = ops::add(ops::lookup(rows, row_of), ops::lookup(columns, column_of));  // [T,B,D]
        return ops::add(x, ops::swap_axes(places));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::picture_encoder{self.size, visit("layers", self.layers), visit("rows", self.rows),
                                        visit("columns", self.columns)};
    }
};
template <class Matrix, class Vector>
picture_encoder(grid, std::vector<nn::convolution<Matrix, Vector>>, Matrix, Matrix) -> picture_encoder<Matrix, Vector>;

/// The decoder of "Show, Attend and Tell".
///
///     c_0 = tanh(W_c ā + b_c),  h_0 = tanh(W_h ā + b_h)           ā the mean of all annotations
///     ẑ_t = attention(h_{t-1}, a)
///     h_t, c_t = LSTM([E y_{t-1}; ẑ_t], h_{t-1}, c_{t-1})
///     p(y_t) = softmax(L_o (E y_{t-1} + L_h h_t + L_z ẑ_t) + b)    Xu et al. 2015, §3.1.2, eq. 1 to 3 and 7
///
/// Deviations: one layer each for c_0 and h_0 (the paper leaves the number open), and the bias b.
template <class Attention, class Matrix, class Vector, class Cell>
struct captioner {
    Attention attention;
    Matrix embedding;  // [V,E]
    Cell cell;         // nn::lstm from E y
    Matrix C;          // [D,4H] from the context to the cell
    Matrix W_h;        // [D,H]
    Vector b_h;        // [H]
    Matrix W_c;        // [D,H]
    Vector b_c;        // [H]
    Matrix L_h;        // [H,E]
    Matrix L_z;        // [D,E]
    Matrix L_o;        // [E,V]
    Vector b;          // [V]

    /// The cell's state before the first word. annotations [B,T,D], all real.
    auto begin(const tensor auto& annotations) const
    {
        const auto [B, T, D] = shape_of(annotations);
        const auto equal =
            constant_like(annotations, shape_of_rank<2>{B, T}, 1.0 / static_cast<double>(std::max<std::size_t>(T, 1)));
        const auto mean = ops::weighted_sum(equal, annotations);  // [B,D]
        return ops::lstm_state{ops::tanh(ops::linear(mean, W_h, b_h)), ops::tanh(ops::linear(mean, W_c, b_c))};
    }

    /// −log p of the words of a batch (teacher forcing) and the weights, for penalties and hard attention. The batch's
    /// source is not read. A row that has ended still attends: for hard attention, batch rows of equal length.
    template <class T>
    auto follow(const tensor auto& annotations, const training_batch<T>& words) const
    {
        const auto memory = attention.on(annotations);
        const auto y = ops::lookup(embedding, words.previous);  // [S,B,E]
        const auto inputs = nn::project_of(cell, y);            // [S,B,4H]
        auto s = begin(annotations);
        auto state = attention.start(memory);
        std::vector<std::remove_cvref_t<decltype(s.hidden)>> states, contexts;
        std::vector<std::remove_cvref_t<decltype(attention.step(memory, s.hidden, state).weights)>> weights;
        for (std::size_t i = 0; i < words.previous.steps; ++i) {
            auto seen = attention.step(memory, s.hidden, state);
            s = nn::next_of(cell, ops::addmm(ops::block(inputs, i), seen.context, C), s);
            state = std::move(seen.state);
            states.push_back(s.hidden);
            contexts.push_back(std::move(seen.context));
            weights.push_back(std::move(seen.weights));
        }
        auto costs = ops::cross_entropy_per_word(logits(y, ops::stack(states), ops::stack(contexts)), words.targets);
        return teacher_forced{std::move(costs), std::move(weights), std::move(state)};
    }

    /// L_o (E y + L_h h + L_z ẑ) + b: [S,B,E], [S,B,H], [S,B,D] -> [S,B,V].
    auto logits(const tensor auto& y, const tensor auto& states, const tensor auto& contexts) const
    {
        return ops::linear(ops::addmm(ops::addmm(y, states, L_h), contexts, L_z), L_o, b);
    }

    /// The same parameters with another normalizer, for a model that is trained with soft and with hard attention.
    auto with(auto normalize) const
    {
        heed::attention other{attention.score, std::move(normalize), attention.combine};
        return captioner<decltype(other), Matrix, Vector, Cell>{
            std::move(other), embedding, cell, C, W_h, b_h, W_c, b_c, L_h, L_z, L_o, b};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::captioner{visit("attention", self.attention),
                                  visit("embedding", self.embedding),
                                  visit("cell", self.cell),
                                  visit("C", self.C),
                                  visit("W_h", self.W_h),
                                  visit("b_h", self.b_h),
                                  visit("W_c", self.W_c),
                                  visit("b_c", self.b_c),
                                  visit("L_h", self.L_h),
                                  visit("L_z", self.L_z),
                                  visit("L_o", self.L_o),
                                  visit("b", self.b)};
    }
};
template <class Attention, class Matrix, class Vector, class Cell>
captioner(Attention, Matrix, Cell, Matrix, Matrix, Vector, Matrix, Vector, Matrix, Matrix, Matrix, Vector)
    -> captioner<Attention, Matrix, Vector, Cell>;

/// Decodes a batch of images with a captioner: an own_model, for decoding_by. The captioner must outlive it. Throws
/// shape_error unless `step` gets a word and room for scores of each row, and heed::error for a row that does not
/// exist.
///
///     seq2seq::captioning<float, decltype(decoder)> steps(decoder, encoder.encode(images));
///     seq2seq::decoding_by<float, decltype(steps)> at_work(steps, B);
///     auto found = seq2seq::beam<float>(at_work, steps.real());
template <class T, class Captioner>
class captioning {
public:
    captioning(const Captioner& model, const array<T, 3>& annotations)
        : model_(&model),
          memory_(model.attention.on(annotations)),
          state_(model.begin(annotations)),
          attention_state_(model.attention.start(memory_)),
          rows_(shape_of(annotations)[0]),
          regions_(shape_of(annotations)[1])
    {}
    captioning(const Captioner&&, const array<T, 3>&) = delete;

    std::size_t vocabulary() const { return shape_of(model_->b)[0]; }  // words of the output

    void step(std::span<const std::uint32_t> previous, std::span<T> scores)
    {
        require_shape<1>("captioning::step", "the list of previous words", {previous.size()}, {rows_},
                         "one for each row");
        require_shape<1>("captioning::step", "the room for scores", {scores.size()}, {rows_ * vocabulary()},
                         "one for each word of the output and row");
        word_ids words(1, rows_);
        std::copy(previous.begin(), previous.end(), words.ids.begin());
        const auto y = ops::lookup(model_->embedding, words);  // [1,R,E]
        auto seen = model_->attention.step(memory_, state_.hidden, attention_state_);
        state_ = nn::next_of(
            model_->cell,
            ops::addmm(ops::block(nn::project_of(model_->cell, y), std::size_t{0}), seen.context, model_->C), state_);
        attention_state_ = std::move(seen.state);
        weights_ = std::move(seen.weights);
        const auto z = model_->logits(y, ops::stack(std::vector{state_.hidden}), ops::stack(std::vector{seen.context}));
        std::copy_n(view_of(z).data, scores.size(), scores.begin());
    }

    /// Row i continues rows[i].
    void select(std::span<const std::size_t> rows)
    {
        const auto gather = [rows](const auto& x) { return ops::rows_of(x, rows); };
        memory_ = memory_.rows(rows);
        state_ = nn::map_state(state_, gather);
        attention_state_ = attention_state_.map(gather);
        rows_ = rows.size();
    }

    /// The weights of all regions at the last step, for hypothesis `row`: [T].
    void weights(std::size_t row, std::vector<T>& to) const
    {
        detail::require_row("captioning::weights", row, shape_of(weights_)[0]);
        const T* const from = view_of(weights_).data + row * regions_;
        to.assign(from, from + regions_);
    }

    /// The same number of real positions for each image, as an argument for the searches.
    lengths real() const { return lengths::full(rows_, regions_); }

private:
    using memory_type = decltype(std::declval<const Captioner&>().attention.on(std::declval<const array<T, 3>&>()));
    using cell_state = decltype(std::declval<const Captioner&>().begin(std::declval<const array<T, 3>&>()));
    using attention_state_type =
        decltype(std::declval<const Captioner&>().attention.start(std::declval<const memory_type&>()));

    const Captioner* model_;
    memory_type memory_;
    cell_state state_;
    attention_state_type attention_state_;
    array<T, 2> weights_;
    std::size_t rows_, regions_;
};

}  // namespace heed::inline HEED_TARGET::seq2seq
