// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heed/core/mask.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/ops/embedding.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// Temporal memory across sentences: the history that `temporal` keeps, for each source word of a document.
///
///     H_w ← log Σ_{j: w_j = w} exp(L_j)                         after a sentence
///     L_{1,j} = H_w − log m_w,  w = w_j                         before the next one; m_w: the count of w in it
///
/// Sankaran et al. 2016, §7, propose as future work "to memorize the alignments for the phrase-pairs across individual
/// sentence pairs", without a formula. This formula is ours (docs/explanation/decisions.md): a source word's Σ exp(L)
/// is carried from sentence to sentence, split equally among its occurrences, and is kept until `forget`. A word that
/// is new to the document starts without history. For scores per position, and without gradient: a document's past is a
/// constant.
///
///     normalize::history_of_words<float> documents(B);         // row b of each batch: the next sentence of document b
///     auto state = attend.start(memory);
///     state.normalize = documents.recall(words, real);         // words [T,B]
///     ... step ...
///     documents.keep(words, real, state.normalize);
template <class T>
class history_of_words {
public:
    explicit history_of_words(std::size_t documents) : of_(documents) {}

    /// The state of `temporal` before the first step of a batch of sentences. Throws shape_error unless there is one
    /// sentence for each document and the lengths fit.
    temporal::state<array<T, 2>> recall(const word_ids& words, const lengths& real) const
    {
        check("history_of_words::recall", words, real);
        auto history = filled<T, 2>({words.batch, words.steps}, -std::numeric_limits<T>::infinity());
        for (std::size_t b = 0; b < words.batch; ++b) {
            std::unordered_map<std::uint32_t, std::size_t> times;
            for (std::size_t j = 0; j < real[b]; ++j) ++times[words(j, b)];
            for (std::size_t j = 0; j < real[b]; ++j) {
                const auto found = of_[b].find(words(j, b));
                if (found == of_[b].end()) continue;
                history(b, j) = found->second - std::log(static_cast<T>(times[words(j, b)]));
            }
        }
        return past_attention{std::move(history)};
    }

    /// Keeps the state of `temporal`, [B,T], after a batch of sentences that began with `recall`. Throws shape_error
    /// unless words, lengths and state fit.
    void keep(const word_ids& words, const lengths& real, const temporal::state<array<T, 2>>& state)
    {
        check("history_of_words::keep", words, real);
        require_shape("history_of_words::keep", "the history", shape_of(state.history),
                      shape_of_rank<2>{words.batch, words.steps}, "one number for each word");
        for (std::size_t b = 0; b < words.batch; ++b) {
            std::unordered_map<std::uint32_t, T> sum;
            for (std::size_t j = 0; j < real[b]; ++j) {
                const T x = state.history(b, j);
                const auto [place, is_first] = sum.emplace(words(j, b), x);
                if (is_first || std::isinf(x)) continue;
                const T high = std::max(place->second, x), low = std::min(place->second, x);
                place->second = high + std::log1p(std::exp(low - high));
            }
            for (const auto& [word, x] : sum) of_[b].insert_or_assign(word, x);
        }
    }

    /// Starts a new document in row b.
    void forget(std::size_t document) { of_.at(document).clear(); }

private:
    void check(const char* where, const word_ids& words, const lengths& real) const
    {
        if (words.batch != of_.size()) {
            throw shape_error(std::string(where) + ": the batch has " + counted(words.batch, "sentence") +
                              " but there are " + counted(of_.size(), "document") + "; give one sentence for each");
        }
        words.require(where);
        real.require(where, words.batch, words.steps);
    }

    std::vector<std::unordered_map<std::uint32_t, T>> of_;
};

}  // namespace heed::inline HEED_TARGET::normalize
