// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/mechanism_list.hpp>
#include <heed/kernels/top_k_words.hpp>
#include <heed/seq2seq/packed.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// The maximum number of words of a translation, after which only the end word is allowed: factor · source words +
/// extra. The source's end word counts; the translation's does not.
struct length_limit {
    double factor = 2;
    std::size_t extra = 10;

    std::size_t words(std::size_t source_words) const
    {
        return static_cast<std::size_t>(factor * static_cast<double>(source_words)) + extra;
    }
};

/// A translation and the attention weights of each of its words.
template <class T>
struct translation {
    id_sentence words;                    // without the end word
    std::vector<std::vector<T>> weights;  // [words + 1][source words + 1], including end words; empty without attention
    double log_probability = 0;           // log p(words, end word | source), in nats
    double score = 0;                     // the search ranks translations by it
};

/// The words that a step proposes for each row.
template <class T>
struct candidates {
    std::size_t most = 0;              // per row
    std::vector<std::uint32_t> words;  // [R,most], the most probable first
    std::vector<T> log_p;              // [R,most]; -inf if the vocabulary has no more words
    std::vector<T> log_p_also;         // [R] of the words in `also`

    /// Buffers for the `count` most probable words of each row and for the words in `also`.
    kernels::top_k_words<T> of_rows(std::size_t rows, std::size_t count, const std::uint32_t* also)
    {
        most = count;
        words.resize(rows * most);
        log_p.resize(rows * most);
        log_p_also.resize(rows);
        return {most, also, words.data(), log_p.data(), log_p_also.data()};
    }
};

/// The decoding of a batch by a model or an ensemble: calls `step`, `propose`, `select`, and repeats. A row is a
/// hypothesis; initially, there is one per sentence.
template <class T>
class decoding {
public:
    decoding() = default;
    decoding(const decoding&) = delete;
    decoding& operator=(const decoding&) = delete;
    virtual ~decoding() = default;

    virtual std::size_t rows() const = 0;        // current number of rows
    virtual std::size_t vocabulary() const = 0;  // current size of the output layer

    /// Every row reads its previous word. Throws shape_error unless there is one word for each row.
    virtual void step(const word_ids& previous) = 0;

    /// The `most` most probable next words of each row, and the log-probability of the word also[row]. Throws
    /// heed::error if `also` is neither empty nor one word for each row.
    virtual void propose(std::size_t most, std::span<const std::uint32_t> also, candidates<T>& into) = 0;

    /// The scores of all words after the last step, [R,V]; valid until the next step.
    virtual tensor_view<const T, 2> logits() = 0;

    virtual bool has_attention() const = 0;  // whether there are attention weights

    /// The attention weights of this row at the last step: one number per real position, averaged over heads and
    /// dimensions. Throws heed::error if the row does not exist.
    virtual void weights(std::size_t row, std::vector<T>& to) const = 0;

    /// Continues with these rows: row i takes the state of row rows[i]. Throws heed::error if a row does not exist.
    virtual void select(std::span<const std::size_t> rows) = 0;

    /// Restricts the output layer to these words, which keep their ids. Throws heed::error unless they are below V, in
    /// ascending order, without duplicates.
    virtual void restrict_to(std::vector<std::uint32_t> words) = 0;

    /// The width of the beam, before the first step. A model may order its products by it, but not by the number of
    /// rows: the results of a sentence must not depend on the rest of its batch.
    virtual void expect(std::size_t) {}
};

namespace detail {

/// Throws heed::error unless there is one row per sentence, as at the start of a search. The message begins with
/// `where`.
inline void require_rows(std::string_view where, std::size_t sentences, std::size_t rows)
{
    if (sentences == rows) return;
    throw error(std::string(where) + ": " + counted(sentences, "sentence") + ", but the model is decoding " +
                counted(rows, "row") + "; give the lengths of its batch, and make a new decoding for each search");
}

/// The words that an output layer is restricted to, and their positions in it.
struct word_list {
    std::vector<std::uint32_t> words;  // ascending; empty: no restriction

    /// The positions of these words, one for each row: words.size() if a word is not listed, nullptr if `of` is empty.
    const std::uint32_t* places(std::span<const std::uint32_t> of, std::size_t rows)
    {
        if (of.empty()) return nullptr;
        if (of.size() != rows) {
            throw error("decoding::propose: " + counted(of.size(), "word") + " for " + counted(rows, "row") +
                        "; give one word per row, or none");
        }
        if (words.empty()) return of.data();
        places_.clear();
        for (const std::uint32_t word : of) {
            const auto found = std::lower_bound(words.begin(), words.end(), word);
            const auto place = found != words.end() && *found == word ? found : words.end();
            places_.push_back(static_cast<std::uint32_t>(place - words.begin()));
        }
        return places_.data();
    }

    /// Throws heed::error for lists that restrict_to does not accept.
    static void require(const std::vector<std::uint32_t>& words, std::size_t vocabulary)
    {
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (words[i] >= vocabulary || (i > 0 && words[i] <= words[i - 1])) {
                throw error("decoding::restrict_to: word " + std::to_string(words[i]) + " in a list of words below " +
                            std::to_string(vocabulary) + "; give them in ascending order, without duplicates");
            }
        }
    }

    void name(std::vector<std::uint32_t>& of) const
    {
        if (words.empty()) return;
        for (std::uint32_t& place : of) {
            if (place < words.size()) place = words[place];
        }
    }

private:
    std::vector<std::uint32_t> places_;
};

/// The memory for the rows of a search: copies of their sentences' memories, or one shared by rows.
auto memory_for_rows(auto, const auto& from, const std::vector<std::size_t>& rows) { return from.rows(rows); }
template <class Score, class Normalize, class Combine, class Values, class Keys>
auto memory_for_rows(std::type_identity<attention<Score, Normalize, Combine>>,
                     const memory<Values, Keys, no_mask>& from, const std::vector<std::size_t>& rows)
{
    return shared_memory<Values, Keys>(from, rows);
}
/// One attention per layer of a decoder.
template <class Attention>
auto memory_for_rows(std::type_identity<std::vector<Attention>>, const auto& from, const std::vector<std::size_t>& rows)
{
    return memory_list{heed::detail::collect(
        from.of, [&](const auto& each) { return memory_for_rows(std::type_identity<Attention>{}, each, rows); })};
}

/// The weights of one row over its real positions, from [B,T], or averaged from [B,T,D] or, for heads and hops,
/// [B,n,T].
template <class Attention, class T, class Weights>
void put_weights(const Weights& weights, std::size_t row, std::size_t real, std::vector<T>& to)
{
    const auto all = view_of(weights);
    to.assign(real, T(0));
    if constexpr (rank_of<Weights> == 2) {
        std::copy_n(all.data + row * all.shape[1], real, to.begin());
    } else {
        const auto [B, rows, columns] = all.shape;
        const T* const from = all.data + row * rows * columns;
        const auto [n, of_one, of_position] = several_at_once<Attention> ? std::array{rows, columns, std::size_t{1}}
                                                                         : std::array{columns, std::size_t{1}, columns};
        for (std::size_t t = 0; t < real; ++t) {
            for (std::size_t k = 0; k < n; ++k) to[t] += from[k * of_one + t * of_position];
            to[t] /= static_cast<T>(n);
        }
    }
}

/// The attention of a model's decoder: a type, a std::vector of the attentions of its layers, or `nothing`.
template <class Model>
auto attention_of(const Model& model)
{
    if constexpr (requires { model.decoder.attention; }) {
        return std::type_identity<std::remove_cvref_t<decltype(model.decoder.attention)>>{};
    } else if constexpr (requires { model.decoder.layers.front().attention; }) {
        return std::type_identity<std::vector<std::remove_cvref_t<decltype(model.decoder.layers.front().attention)>>>{};
    } else {
        return std::type_identity<nothing>{};
    }
}
template <class Model>
using attention_type = decltype(detail::attention_of(std::declval<const Model&>()));

}  // namespace detail

/// Decodes one batch with one model, which must outlive this object.
template <class T, class Model>
class decoding_of final : public decoding<T> {
public:
    static_assert(searchable<Model>,
                  "heed: a search needs a model with open(source), advance(memory, state, previous) and output(), as "
                  "in seq2seq::translator; decoding_by wraps a custom model");

    /// With `fast`, products are computed as in `packed`.
    decoding_of(const Model& model, const source_batch& source, const packed<T, Model>* fast = nullptr)
        : model_(&model),
          fast_(fast),
          output_(model.output()),
          start_(opened(source)),
          state_(std::move(start_.state)),
          real_(source.real),
          sentence_(source.words.batch)
    {
        std::iota(sentence_.begin(), sentence_.end(), std::size_t{0});
    }

    std::size_t rows() const override { return sentence_.size(); }

    std::size_t vocabulary() const override
    {
        return only_.words.empty() ? shape_of(output_.b)[0] : only_.words.size();
    }

    void step(const word_ids& previous) override
    {
        require_shape<2>("decoding::step", "the previous words", {previous.steps, previous.batch}, {1, rows()},
                         "one for each row");
        previous.require("decoding::step");
        computed_ = with_bias_ = false;
        const kernels::int8_weights::in_use guard(int8());
        if (of_rows_) {
            step_with(*of_rows_, previous);
        } else {
            step_with(memory(), previous);
        }
    }

    void propose(std::size_t most, std::span<const std::uint32_t> also, candidates<T>& into) override
    {
        const std::size_t R = rows(), V = vocabulary();
        const auto wanted = into.of_rows(R, std::min(most, V), only_.places(also, R));
        if (fast_ != nullptr && !computed_) {
            const output_panels<T>& panels = output_in_panels();
            kernels::output_top_k(R, readout(), panels.weights, panels.bias.data(), wanted);
        } else {
            compute();
            kernels::log_softmax_top(R, V, static_cast<const T*>(logits_.data()), with_bias_ ? nullptr : bias(),
                                     wanted);
        }
        only_.name(into.words);
    }

    tensor_view<const T, 2> logits() override
    {
        compute();
        const std::size_t R = rows(), V = vocabulary();
        if (!with_bias_) {
            for (std::size_t r = 0; r < R; ++r) kernels::add(V, logits_.data() + r * V, bias());
        }
        with_bias_ = true;
        return {logits_.data(), {R, V}};
    }

    bool has_attention() const override { return has_weights; }

    void weights([[maybe_unused]] std::size_t row, std::vector<T>& to) const override
    {
        to.clear();
        if constexpr (has_weights) {
            detail::require_row("decoding::weights", row, sentence_.size());
            const auto& all = seen_ ? seen_->weights : next_->seen.weights;
            detail::put_weights<typename model_attention::type>(all, row, real_[sentence_[row]], to);
        }
    }

    void select(std::span<const std::size_t> rows) override
    {
        for (const std::size_t row : rows) detail::require_row("decoding::select", row, sentence_.size());
        bool stays = rows.size() == sentence_.size();
        for (std::size_t i = 0; stays && i < rows.size(); ++i) stays = rows[i] == i;
        if (stays) return;
        state_ = state_.map([rows](const auto& x) { return ops::rows_of(x, rows); });
        std::vector<std::size_t> sentence(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) sentence[i] = sentence_[rows[i]];
        if (sentence != sentence_) {
            sentence_ = std::move(sentence);
            of_rows_.reset();  // frees its memory before the successor is allocated
            of_rows_.emplace(detail::memory_for_rows(model_attention{}, memory(), sentence_));
        }
    }

    void expect(std::size_t rows_of_sentence) override
    {
        if constexpr (packs && multiplies) {
            // Pays off if several hypotheses read each source word.
            if (fast_ != nullptr && !multiplied_ && !of_rows_ && rows_of_sentence >= 4) multiply();
        }
    }

    void restrict_to(std::vector<std::uint32_t> words) override
    {
        detail::word_list::require(words, shape_of(output_.b)[0]);
        some_W_ = ops::columns_of(output_.W, words);
        some_b_ = ops::columns_of(output_.b, words);
        only_.words = std::move(words);
        if (fast_ != nullptr)
            some_output_.pack(shape_of(some_W_)[0], some_b_.size(), some_W_.data(), some_b_.data(),
                              fast_->output().weights.is_int8() ? weight_numbers::int8 : weight_numbers::full);
    }

private:
    using model_attention = detail::attention_type<Model>;
    using opening_type = decltype(std::declval<const Model&>().open(std::declval<const source_batch&>()));
    using memory_type = std::remove_cvref_t<decltype(opening_type::memory)>;
    using memory_for_rows =
        decltype(detail::memory_for_rows(model_attention{}, std::declval<const memory_type&>(), {}));
    using state_type = std::remove_cvref_t<decltype(opening_type::state)>;
    using next = decltype(std::declval<const Model&>().advance(
        std::declval<const memory_type&>(), std::declval<const state_type&>(), std::declval<const word_ids&>()));
    using seen = std::remove_cvref_t<decltype(next::seen)>;
    static constexpr bool has_weights = requires(const next& n) { n.seen.weights; };
    static constexpr bool packs = detail::packable<Model>;
    static constexpr bool multiplies = detail::matrix_may_come_first<typename model_attention::type>;

    const kernels::int8_weights* int8() const { return fast_ == nullptr ? nullptr : fast_->int8(); }

    opening_type opened(const source_batch& source) const
    {
        const kernels::int8_weights::in_use guard(int8());
        return model_->open(source);
    }

    const output_panels<T>& output_in_panels() const { return only_.words.empty() ? fast_->output() : some_output_; }

    void step_with(const auto& memory, const word_ids& previous)
    {
        if constexpr (packs) {
            if (fast_ != nullptr) {
                const auto& decoder = model_->decoder;
                const decoder_panels<T>& panels = fast_->decoder();
                seen_.emplace(decoder.attend(memory, state_, previous));
                state_.attention = std::move(seen_->state);
                readout_.resize(rows() * panels.readout_size());
                auto after = nn::map_state(state_.cell, []<class X>(const X& x) { return X(shape_of(x)); });
                panels.advance(previous, view_of(seen_->context).data, multiplied_ != nullptr,
                               rows_of_cell<const T>(state_.cell), rows_of_cell<T>(after), readout_.data());
                state_.cell = std::move(after);
                return;
            }
        }
        next_.emplace(model_->advance(memory, std::move(state_), previous));
        state_ = std::move(next_->state);
        require_shape<3>("decoding", "the readout", shape_of(next_->readout), {1, rows(), shape_of(output_.W)[0]},
                         "one row for each hypothesis");
    }

    template <class Element>
    static cell_rows<Element> rows_of_cell(auto& cell)
    {
        if constexpr (tensor<decltype(cell)>) {
            return {cell.data()};
        } else {
            return {cell.hidden.data(), cell.cell.data()};
        }
    }

    const memory_type& memory() const { return multiplied_ ? *multiplied_ : start_.memory; }

    /// Replaces the values with their products with the decoder's matrices: see packed.hpp.
    void multiply()
    {
        if constexpr (packs && multiplies) {
            const decoder_panels<T>& panels = fast_->decoder();
            auto values = view_of(start_.memory.values);
            const auto [B, T_, D] = values.shape;
            multiplied_ = std::make_unique<memory_type>(start_.memory);
            fit(multiplied_->values, {B, T_, panels.width});
            T* const products = multiplied_->values.data();
            if (panels.context.is_int8()) {
                panels.context.multiply(B * T_, values.data, D, products, panels.width, false);
            } else {
                blas::gemm(blas::op::plain, blas::op::plain, B * T_, panels.width, D, values.data,
                           panels.from_context.data(), T(0), products);
            }
        }
    }

    const T* readout() const { return seen_ ? readout_.data() : view_of(next_->readout).data; }  // [R,L]

    /// readout W, without b.
    void compute()
    {
        if (computed_) return;
        const auto W = view_of(output_.W);
        const std::size_t V = vocabulary(), R = rows();
        if (logits_.size() < R * V) logits_.resize(R * V);
        computed_ = true;
        if (fast_ != nullptr && fast_->output().weights.is_int8())
            return output_in_panels().weights.multiply(R, readout(), W.shape[0], logits_.data(), V, false);
        blas::gemm(blas::op::plain, blas::op::plain, R, V, W.shape[0], readout(),
                   only_.words.empty() ? W.data : static_cast<const T*>(some_W_.data()), T(0), logits_.data());
    }

    const T* bias() const { return only_.words.empty() ? view_of(output_.b).data : some_b_.data(); }

    const Model* model_;
    const packed<T, Model>* fast_;
    decltype(std::declval<const Model&>().output()) output_;
    opening_type start_;
    state_type state_;
    std::optional<memory_for_rows> of_rows_;  // null while there is one row per sentence: start_.memory is used
    std::optional<next> next_;                // the last step's result
    std::optional<seen> seen_;                // the last step's result of a packed decoder, with
    std::vector<T> readout_;                  // [R,L]
    std::unique_ptr<memory_type> multiplied_;
    lengths real_;                       // of each sentence
    std::vector<std::size_t> sentence_;  // [R] the sentence of each row
    std::vector<T> logits_;              // [R,V], reused at every step
    bool computed_ = false, with_bias_ = false;
    detail::word_list only_;
    array<T, 2> some_W_;  // the output layer of these words
    array<T, 1> some_b_;
    output_panels<T> some_output_;
};

/// Decodes a batch with a model, which may be `packed` and must outlive the decoding.
template <class T, class Model>
std::unique_ptr<decoding<T>> decode(const packed<T, Model>& model, const source_batch& source)
{
    return std::make_unique<decoding_of<T, Model>>(model.model(), source, &model);
}
template <class T, class Model>
std::unique_ptr<decoding<T>> decode(const Model& model, const source_batch& source)
{
    return std::make_unique<decoding_of<T, Model>>(model, source);
}
template <class T, class Model>
std::unique_ptr<decoding<T>> decode(const Model&& model, const source_batch& source) = delete;

}  // namespace heed::inline HEED_TARGET::seq2seq
