// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heed/seq2seq/decoding.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// A custom model that decodes one batch. A row is a hypothesis; initially, there is one per sentence.
///
///     vocabulary()              V, the number of words
///     step(previous, scores)    every row reads its previous word, [R], and writes a score for each next word into
///                               scores [R,V]: log-probabilities, or logits, since the search applies a softmax
///     select(rows)              continues with these rows: row i takes the state of row rows[i]
///
/// and, with attention: weights(row, to), which writes one weight per source position to a vector.
template <class Steps, class T>
concept own_model = std::floating_point<T> && requires(Steps& model, std::span<const std::uint32_t> previous,
                                                       std::span<T> scores, std::span<const std::size_t> rows)
{
    requires std::convertible_to<decltype(model.vocabulary()), std::size_t>;
    model.step(previous, scores);
    model.select(rows);
};

/// Wraps such a model for `beam`, `greedy`, `force` and `ensemble`. It refers to the model, which must outlive it.
/// Throws heed::error for a model without words.
///
///     seq2seq::decoding_by<float, my_model> at_work(model, batch);
///     auto found = seq2seq::beam<float>(at_work, lengths{7, 5});       // of the sources, including end words
template <class T, own_model<T> Steps>
class decoding_by final : public decoding<T> {
public:
    decoding_by(Steps& model, std::size_t sentences) : model_(model), rows_(sentences), total_(model.vocabulary())
    {
        if (total_ == 0) throw error("decoding_by: the model has no words; vocabulary() must be 1 or more");
    }
    decoding_by(Steps&& model, std::size_t sentences) = delete;

    std::size_t rows() const override { return rows_; }
    std::size_t vocabulary() const override { return only_.words.empty() ? total_ : only_.words.size(); }

    void step(const word_ids& previous) override
    {
        require_shape<2>("decoding_by::step", "the previous words", {previous.steps, previous.batch}, {1, rows_},
                         "one for each row");
        previous.require("decoding_by::step");
        all_.resize(rows_ * total_);
        model_.step(std::span<const std::uint32_t>(previous.ids), std::span<T>(all_));
        if (only_.words.empty()) return;
        some_.resize(rows_ * only_.words.size());
        for (std::size_t r = 0; r < rows_; ++r) {
            for (std::size_t i = 0; i < only_.words.size(); ++i)
                some_[r * only_.words.size() + i] = all_[r * total_ + only_.words[i]];
        }
    }

    void propose(std::size_t most, std::span<const std::uint32_t> also, candidates<T>& into) override
    {
        kernels::log_softmax_top<T>(rows_, vocabulary(), logits().data, nullptr,
                                    into.of_rows(rows_, std::min(most, vocabulary()), only_.places(also, rows_)));
        only_.name(into.words);
    }

    tensor_view<const T, 2> logits() override
    {
        return {only_.words.empty() ? all_.data() : some_.data(), {rows_, vocabulary()}};
    }

    bool has_attention() const override
    {
        return requires(const Steps& model, std::vector<T>& to) { model.weights(std::size_t{}, to); };
    }

    void weights([[maybe_unused]] std::size_t row, std::vector<T>& to) const override
    {
        to.clear();
        if constexpr (requires(const Steps& model) { model.weights(row, to); }) {
            static_cast<const Steps&>(model_).weights(row, to);
        }
    }

    void select(std::span<const std::size_t> rows) override
    {
        for (const std::size_t row : rows) detail::require_row("decoding_by::select", row, rows_);
        model_.select(rows);
        rows_ = rows.size();
    }

    void restrict_to(std::vector<std::uint32_t> words) override
    {
        detail::word_list::require(words, total_);
        only_.words = std::move(words);
    }

private:
    Steps& model_;
    std::size_t rows_, total_;
    std::vector<T> all_, some_;  // [R,V] scores of the last step: of all words, and of the words of restrict_to
    detail::word_list only_;
};

}  // namespace heed::inline HEED_TARGET::seq2seq
