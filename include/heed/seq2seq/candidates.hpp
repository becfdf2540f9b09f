// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/seq2seq/batch.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// The target words that a batch may use:
///     the first `frequent` words of the vocabulary: the four special words and the most frequent words
///     ∪ for each source word of the batch, the first `per_word` of its translations
///     ∪ with add_phrases(): for each source phrase of the batch, the first words of its translations
///     ∪ in training, the reference's words                    Jean et al. 2015, §3.2; Mi et al. 2016
class candidate_lists {
public:
    /// translations[source word]: target words, best first.
    candidate_lists(std::size_t frequent, std::size_t per_word, std::vector<std::vector<std::uint32_t>> translations)
        : frequent_(frequent), per_word_(per_word), translations_(std::move(translations))
    {}

    /// As above, from a dictionary: `size()` and `of(source)`, whose elements have `target` (text::lexicon).
    template <class Lexicon>
        requires requires(const Lexicon& lexicon) { lexicon.of(0u); }
    candidate_lists(std::size_t frequent, std::size_t per_word, const Lexicon& lexicon)
        : frequent_(frequent), per_word_(per_word), translations_(lexicon.size())
    {
        for (std::size_t source = 0; source < translations_.size(); ++source) {
            for (const auto& each : lexicon.of(static_cast<std::uint32_t>(source))) {
                if (translations_[source].size() == per_word) break;
                translations_[source].push_back(each.target);
            }
        }
    }

    /// Adds the words of phrase translations: phrases.words_of(sentence, per_phrase, see) calls see(word)
    /// (text::phrase_table).
    void add_phrases(std::size_t per_phrase, auto phrases)
    {
        of_phrases_ = [per_phrase, phrases = std::move(phrases)](std::span<const std::uint32_t> sentence,
                                                                 const std::function<void(std::uint32_t)>& see) {
            phrases.words_of(sentence, per_phrase, see);
        };
    }

    /// The words for one batch: ascending, without duplicates, all below `vocabulary`. They include the special words.
    /// Throws shape_error unless the lengths fit the words.
    std::vector<std::uint32_t> of(const source_batch& source, std::size_t vocabulary,
                                  const special_ids& special = {}) const
    {
        source.words.require("candidate_lists::of");
        source.real.require("candidate_lists::of", source.words.batch, source.words.steps);
        std::vector<char> in(vocabulary, 0);
        std::fill_n(in.begin(), std::min(frequent_, vocabulary), char{1});
        const auto add = [&in](std::uint32_t word) {
            if (word < in.size()) in[word] = 1;
        };
        for (const std::uint32_t mark : {special.padding, special.begin, special.end}) add(mark);
        std::vector<std::uint32_t> sentence;
        for (std::size_t b = 0; b < source.words.batch; ++b) {
            sentence.clear();
            for (std::size_t t = 0; t < source.real[b]; ++t) {
                const std::uint32_t word = source.words(t, b);
                sentence.push_back(word);
                if (word >= translations_.size()) continue;
                const auto& known = translations_[word];
                for (std::size_t k = 0; k < std::min(per_word_, known.size()); ++k) add(known[k]);
            }
            if (of_phrases_) of_phrases_(sentence, add);
        }
        std::vector<std::uint32_t> words;
        for (std::size_t word = 0; word < in.size(); ++word) {
            if (in[word] != 0) words.push_back(static_cast<std::uint32_t>(word));
        }
        return words;
    }

    /// As above, for training: includes the words of the references.
    template <class T>
    std::vector<std::uint32_t> of(const training_batch<T>& batch, std::size_t vocabulary,
                                  const special_ids& special = {}) const
    {
        std::vector<std::uint32_t> words = of(batch.source, vocabulary, special);
        for (const std::uint32_t word : batch.targets.words.ids) {
            if (word < vocabulary) words.push_back(word);
        }
        std::sort(words.begin(), words.end());
        words.erase(std::unique(words.begin(), words.end()), words.end());
        return words;
    }

private:
    std::size_t frequent_, per_word_;
    std::vector<std::vector<std::uint32_t>> translations_;
    std::function<void(std::span<const std::uint32_t>, const std::function<void(std::uint32_t)>&)> of_phrases_;
};

/// The positions of words in an ascending list that contains every word, except words with weight 0. Throws heed::error
/// for a word that is not in the list.
template <class T = float>
word_ids places_in(const std::vector<std::uint32_t>& list, const word_ids& words, std::span<const T> weights = {})
{
    words.require("candidates");
    word_ids places(words.steps, words.batch);
    for (std::size_t i = 0; i < words.ids.size(); ++i) {
        if (i < weights.size() && weights[i] == T(0)) continue;
        const auto found = std::lower_bound(list.begin(), list.end(), words.ids[i]);
        if (found == list.end() || *found != words.ids[i]) {
            throw error("candidates: word " + std::to_string(words.ids[i]) +
                        " of a reference is not in the list; in training the list must contain the references' words");
        }
        places.ids[i] = static_cast<std::uint32_t>(found - list.begin());
    }
    return places;
}

}  // namespace heed::inline HEED_TARGET::seq2seq
