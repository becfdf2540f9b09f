// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <heed/seq2seq/decoding.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// Options of greedy decoding: when it stops, its results, and the words that begin and end a sentence.
struct greedy_options {
    length_limit at_most{};  // maximum length in words
    bool with_weights = false;
    special_ids special{};
    bool marks = false;  // allows the padding and the begin word in translations, as ordinary words

    /// If not empty, called for each sentence before each step. If it returns false, the translation has no words and
    /// the log-probability −∞.
    std::function<bool(std::size_t sentence)> wanted = {};
};

/// Greedy decoding: emits the most probable word at every step, until the end word or the maximum length. `source`: the
/// real positions of each sentence. Throws heed::error unless `model` has one row per sentence.
template <class T>
std::vector<translation<T>> greedy(decoding<T>& model, const lengths& source, const greedy_options& how = {})
{
    detail::require_rows("greedy", source.batch(), model.rows());
    const bool has_attention = how.with_weights && model.has_attention();
    std::vector<translation<T>> results(source.batch());
    std::vector<std::size_t> sentence(source.batch());  // of each row; results.size() if it has ended
    std::iota(sentence.begin(), sentence.end(), std::size_t{0});
    word_ids previous(1, sentence.size(), how.special.begin);
    candidates<T> next, more;  // more: used if a row's most probable word is excluded
    std::vector<T> weights;
    const auto is_mark = [&how](std::uint32_t word) {
        return !how.marks && word != how.special.end && (word == how.special.padding || word == how.special.begin);
    };
    std::vector<std::size_t> rows;
    std::vector<std::uint32_t> ends(sentence.size(), how.special.end);
    std::size_t open = sentence.size();
    const auto leave_unwanted = [&] {
        for (std::size_t r = 0; how.wanted && r < sentence.size(); ++r) {
            if (sentence[r] == results.size() || how.wanted(sentence[r])) continue;
            results[sentence[r]] = {};
            results[sentence[r]].log_probability = -std::numeric_limits<double>::infinity();
            sentence[r] = results.size();
            --open;
        }
    };
    leave_unwanted();
    for (std::size_t i = 0; open > 0; ++i) {
        model.step(previous);
        model.propose(1, ends, next);
        bool any_mark = false;
        for (std::size_t r = 0; r < sentence.size(); ++r)
            any_mark = any_mark || (sentence[r] < results.size() && is_mark(next.words[r]));
        if (any_mark) model.propose(3, ends, more);  // two may be excluded
        for (std::size_t r = 0; r < sentence.size(); ++r) {
            if (sentence[r] == results.size()) continue;
            if (is_mark(next.words[r])) {
                std::size_t k = r * more.most;
                while (k < (r + 1) * more.most && is_mark(more.words[k])) ++k;
                // If no other word is allowed, the sentence ends.
                const bool none = k == (r + 1) * more.most || !(more.log_p[k] > -std::numeric_limits<T>::infinity());
                next.words[r] = none ? how.special.end : more.words[k];
                next.log_p[r] = none ? next.log_p_also[r] : more.log_p[k];
            }
            translation<T>& result = results[sentence[r]];
            const bool over = i >= how.at_most.words(source[sentence[r]]);
            const std::uint32_t word = over ? how.special.end : next.words[r];
            const double log_p = static_cast<double>(over ? next.log_p_also[r] : next.log_p[r]);
            if (!(log_p > -std::numeric_limits<double>::infinity())) {
                throw error("greedy: no word has a probability above 0 at step " + std::to_string(i) +
                            "; are the model's scores NaN?");
            }
            result.log_probability += log_p;
            if (has_attention) {
                model.weights(r, weights);
                result.weights.push_back(weights);
            }
            previous(0, r) = word;
            if (word == how.special.end) {
                sentence[r] = results.size();
                --open;
            } else {
                result.words.push_back(word);
            }
        }
        leave_unwanted();
        if (open == 0 || 8 * open > 7 * sentence.size()) continue;
        rows.clear();
        for (std::size_t r = 0; r < sentence.size(); ++r) {
            if (sentence[r] == results.size()) continue;
            sentence[rows.size()] = sentence[r];
            previous.ids[rows.size()] = previous.ids[r];
            rows.push_back(r);
        }
        sentence.resize(rows.size());
        ends.resize(rows.size());
        previous.ids.resize(rows.size());
        previous.batch = rows.size();
        model.select(rows);
    }
    for (translation<T>& result : results) result.score = result.log_probability;
    return results;
}

template <class T, class Model>
std::vector<translation<T>> greedy(const Model& model, const source_batch& source, const greedy_options& how = {})
{
    const auto running = decode<T>(model, source);
    return greedy<T>(*running, source.real, how);
}

}  // namespace heed::inline HEED_TARGET::seq2seq
