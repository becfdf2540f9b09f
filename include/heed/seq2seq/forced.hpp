// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heed/seq2seq/decoding.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// The score of a given translation.
template <class T>
struct forced_decoding {
    std::vector<T> log_probabilities;     // [words + 1] log p(word | words before, source); the last is the end word
    std::vector<std::vector<T>> weights;  // [words + 1][source words + 1]; empty without attention or if not requested

    /// log p(words, end word | source), in nats.
    double log_probability() const
    {
        double sum = 0;
        for (const T each : log_probabilities) sum += static_cast<double>(each);
        return sum;
    }
};

/// Options of forced decoding.
struct force_options {
    bool with_weights = true;
    special_ids special{};
};

/// Forced decoding: computes the log-probability of a given translation of each sentence (Sankaran et al. 2016, §6.4).
/// Throws heed::error unless there is one translation and one row of `model` per sentence, as before any search.
template <class T>
std::vector<forced_decoding<T>> force(decoding<T>& model, const lengths& source,
                                      std::span<const id_sentence* const> targets, const force_options& how = {})
{
    if (targets.size() != source.batch()) {
        throw error("force: " + counted(targets.size(), "translation") + " of " + counted(source.batch(), "sentence") +
                    "; give one per sentence");
    }
    detail::require_rows("force", source.batch(), model.rows());
    const bool has_attention = how.with_weights && model.has_attention();
    std::vector<forced_decoding<T>> results(targets.size());
    std::vector<std::size_t> sentence(targets.size()), rows;
    for (std::size_t b = 0; b < sentence.size(); ++b) sentence[b] = b;
    candidates<T> next;
    std::vector<T> weights;
    for (std::size_t i = 0; !sentence.empty(); ++i) {
        word_ids previous(1, sentence.size());
        std::vector<std::uint32_t> wanted(sentence.size());
        for (std::size_t r = 0; r < sentence.size(); ++r) {
            const id_sentence& words = *targets[sentence[r]];
            previous(0, r) = i == 0 ? how.special.begin : words[i - 1];
            wanted[r] = i < words.size() ? words[i] : how.special.end;
        }
        model.step(previous);
        model.propose(0, wanted, next);
        rows.clear();
        for (std::size_t r = 0; r < sentence.size(); ++r) {
            forced_decoding<T>& result = results[sentence[r]];
            result.log_probabilities.push_back(next.log_p_also[r]);
            if (has_attention) {
                model.weights(r, weights);
                result.weights.push_back(weights);
            }
            if (i < targets[sentence[r]]->size()) rows.push_back(r);
        }
        if (rows.size() == sentence.size()) continue;
        for (std::size_t r = 0; r < rows.size(); ++r) sentence[r] = sentence[rows[r]];
        sentence.resize(rows.size());
        model.select(rows);
    }
    return results;
}

template <class T, class Model>
std::vector<forced_decoding<T>> force(const Model& model, const source_batch& source,
                                      std::span<const id_sentence* const> targets, const force_options& how = {})
{
    const auto running = decode<T>(model, source);
    return force<T>(*running, source.real, targets, how);
}

/// Which weights count as links.
struct link_options {
    /// If the source's end word has the largest weight: leaves the target word unaligned, or links it to the next best.
    bool end_word_means_unaligned = true;
};

/// Links (source position, target position) from 0, as heed::metrics::links: links each target word to the source word
/// with the largest weight, or to the first such word. `weights` [words + 1][source words + 1] include the end words.
template <class T>
std::vector<std::pair<int, int>> links_of(const std::vector<std::vector<T>>& weights, const link_options& how = {})
{
    std::vector<std::pair<int, int>> links;
    for (std::size_t j = 0; j + 1 < weights.size(); ++j) {
        const std::vector<T>& row = weights[j];
        if (row.size() < 2) continue;  // an empty source has only its end word
        const auto end = row.end() - (how.end_word_means_unaligned ? 0 : 1);
        const auto at = std::max_element(row.begin(), end);
        if (at + 1 != row.end()) links.emplace_back(static_cast<int>(at - row.begin()), static_cast<int>(j));
    }
    return links;
}

}  // namespace heed::inline HEED_TARGET::seq2seq
