// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heed/pairs/batch.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/text/similar.hpp>
#include <heed_kit/text/vocabulary.hpp>

#include "../support/number_words.hpp"

/// Sentence pairs with a label: whether the second sentence is the translation of the first.
namespace sentence_pairs {

using heed::text::parallel_corpus;
using heed::text::sentence;

/// Each pair of a parallel corpus twice: once with its translation (yes), once with the most similar other translation
/// of the same length (no).
struct examples {
    std::vector<heed::pairs::id_sentence> first, second;
    std::vector<std::uint32_t> answers;

    std::size_t size() const { return answers.size(); }

    heed::pairs::batch<float> batch(const std::vector<std::size_t>& which) const
    {
        std::vector<const heed::pairs::id_sentence*> left, right;
        std::vector<std::uint32_t> classes;
        for (const std::size_t i : which) {
            left.push_back(&first[i]);
            right.push_back(&second[i]);
            classes.push_back(answers[i]);
        }
        return heed::pairs::make_batch<float>(left, right, std::move(classes));
    }
};

/// The vocabularies of both languages, and the maximum sentence length of a model: longer sentences are truncated.
struct languages {
    heed::text::vocabulary first, second;
    std::size_t longest = 64;

    examples encode(const parallel_corpus& corpus) const
    {
        const auto ids = [this](const heed::text::vocabulary& words, const sentence& line) {
            auto all = words.encode(line);
            all.resize(std::min(all.size(), longest));
            return all;
        };
        const std::vector<std::size_t> similar = heed::text::most_similar(corpus.target);
        examples all;
        for (std::size_t i = 0; i < corpus.size(); ++i) {
            for (const std::size_t other : {i, similar[i]}) {
                all.first.push_back(ids(first, corpus.source[i]));
                all.second.push_back(ids(second, corpus.target[other]));
                all.answers.push_back(other == i ? heed::pairs::yes : heed::pairs::no);
            }
        }
        return all;
    }
};

inline parallel_corpus of_numbers(const std::vector<numbers::pair>& pairs)
{
    parallel_corpus corpus;
    for (const numbers::pair& each : pairs) {
        corpus.source.push_back(each.english);
        corpus.target.push_back(each.german);
    }
    return corpus;
}

}  // namespace sentence_pairs
