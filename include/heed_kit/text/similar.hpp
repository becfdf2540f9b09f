// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed_kit/text/sentence.hpp>

/// Finds sentences that share words, especially rare ones.
namespace heed::inline HEED_TARGET::text {

namespace detail {

/// Unit vectors of tf-idf weights, one per sentence, and for each word the sentences of a given length that contain it.
class tf_idf {
public:
    explicit tf_idf(std::span<const sentence> corpus) : corpus_(corpus), vectors_(corpus.size()), scores_(corpus.size())
    {
        std::unordered_map<std::string_view, std::size_t> ids;
        std::vector<std::size_t> with_word;  // df
        for (std::size_t i = 0; i < corpus.size(); ++i) {
            std::map<std::size_t, double> counts;
            for (const std::string& word : corpus[i]) {
                const auto [found, is_new] = ids.emplace(word, ids.size());
                if (is_new) with_word.push_back(0);
                ++counts[found->second];
            }
            for (const auto& [id, count] : counts) ++with_word[id];
            vectors_[i].assign(counts.begin(), counts.end());
            of_length_[corpus[i].size()].sentences.push_back(i);
        }
        const auto all = static_cast<double>(corpus.size());
        for (auto& vector : vectors_) {
            double squares = 0;
            for (auto& [id, weight] : vector) {
                weight *= std::log(all / static_cast<double>(with_word[id]));
                squares += weight * weight;
            }
            if (squares == 0) continue;
            for (auto& [id, weight] : vector) weight /= std::sqrt(squares);
        }
        for (auto& [length, same] : of_length_) {
            for (const std::size_t i : same.sentences) {
                for (const auto& [id, weight] : vectors_[i]) same.with_word[id].emplace_back(i, weight);
            }
        }
    }

    /// The sentence of this length that is most similar to sentence i but not equal to it.
    std::optional<std::size_t> nearest(std::size_t i, std::size_t length)
    {
        const auto found = of_length_.find(length);
        if (found == of_length_.end()) return std::nullopt;
        const group& among = found->second;
        for (const std::size_t j : among.sentences) scores_[j] = 0;
        for (const auto& [id, weight] : vectors_[i]) {
            const auto listed = among.with_word.find(id);
            if (listed == among.with_word.end()) continue;
            for (const auto& [j, other] : listed->second) scores_[j] += weight * other;
        }
        std::optional<std::size_t> best;
        for (const std::size_t j : among.sentences) {
            if ((!best || scores_[j] > scores_[*best]) && corpus_[j] != corpus_[i]) best = j;
        }
        return best;
    }

    std::size_t longest() const { return of_length_.empty() ? 0 : of_length_.rbegin()->first; }

private:
    using weighted = std::vector<std::pair<std::size_t, double>>;
    struct group {
        std::vector<std::size_t> sentences;
        std::unordered_map<std::size_t, weighted> with_word;
    };

    std::span<const sentence> corpus_;
    std::vector<weighted> vectors_;
    std::vector<double> scores_;
    std::map<std::size_t, group> of_length_;
};

}  // namespace detail

/// For each sentence, the most similar other sentence of the same length: hard negatives for models of sentence pairs.
///
///     w(t, s) = count of t in s · log(N / number of sentences with t),  similarity = cos(w(s), w(s'))
///
/// Equal sentences are not candidates. If there is no other sentence of that length, the nearest length with one is
/// used, the shorter of two. Of equally similar sentences, the first is chosen, so the result depends only on the
/// corpus. Throws heed::error if all sentences are equal.
inline std::vector<std::size_t> most_similar(std::span<const sentence> corpus)
{
    detail::tf_idf index(corpus);
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < corpus.size(); ++i) {
        std::optional<std::size_t> found;
        const std::size_t length = corpus[i].size(), farthest = std::max(length, index.longest());
        for (std::size_t off = 0; off <= farthest && !found; ++off) {
            if (off <= length) found = index.nearest(i, length - off);
            if (!found) found = index.nearest(i, length + off);
        }
        if (!found) throw error("text::most_similar: every sentence is \"" + join(corpus[i]) + "\"; two must differ");
        result.push_back(*found);
    }
    return result;
}

}  // namespace heed::inline HEED_TARGET::text
