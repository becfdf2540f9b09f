// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/mask.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/losses.hpp>

/// Sentence pairs: models that read two sentences and predict how they are related.
namespace heed::inline HEED_TARGET::pairs {

/// A sentence as word ids.
using id_sentence = std::vector<std::uint32_t>;

/// The class of a pair in a binary task.
enum answer : std::uint32_t { no = 0, yes = 1 };

/// A padded batch of pairs.
template <class T>
struct batch {
    word_ids first;                   // [S,B]
    lengths first_real;               // of the first sentences
    word_ids second;                  // [T,B]
    lengths second_real;              // of the second sentences
    ops::expected_words<T> expected;  // [1,B] the class of each pair, with weight 1

    std::size_t size() const { return first.batch; }
};

namespace detail {

/// A padded batch of sentences, [S,B], with the number of words of each. The padding's id is 0.
inline std::pair<word_ids, lengths> side_by_side(std::span<const id_sentence* const> sentences)
{
    std::size_t longest = 0;
    for (const id_sentence* each : sentences) longest = std::max(longest, each->size());
    word_ids words(longest, sentences.size());
    std::vector<std::size_t> real(sentences.size());
    for (std::size_t b = 0; b < sentences.size(); ++b) {
        real[b] = sentences[b]->size();
        for (std::size_t s = 0; s < real[b]; ++s) words(s, b) = (*sentences[b])[s];
    }
    return {std::move(words), lengths(std::move(real))};
}

}  // namespace detail

/// A batch of pairs (first[b], second[b]) of class classes[b]. Throws heed::error unless their numbers are equal.
template <class T>
batch<T> make_batch(std::span<const id_sentence* const> first, std::span<const id_sentence* const> second,
                    std::vector<std::uint32_t> classes)
{
    const std::size_t B = first.size();
    if (second.size() != B || classes.size() != B) {
        throw error("pairs::make_batch: " + counted(B, "first sentence") + ", " +
                    counted(second.size(), "second sentence") + " and " + counted(classes.size(), "class", "classes") +
                    "; their numbers must be equal");
    }
    auto [words, real] = detail::side_by_side(first);
    auto [others, others_real] = detail::side_by_side(second);
    word_ids expected(1, B);
    expected.ids = std::move(classes);
    return {std::move(words),
            std::move(real),
            std::move(others),
            std::move(others_real),
            {std::move(expected), std::vector<T>(B, T(1))}};
}

}  // namespace heed::inline HEED_TARGET::pairs
