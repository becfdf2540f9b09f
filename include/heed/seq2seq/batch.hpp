// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/random.hpp>
#include <heed/ops/losses.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// A sentence as word ids, without begin and end words.
using id_sentence = std::vector<std::uint32_t>;

/// The words that begin and end every target sentence, and the padding word (which is never attended to).
struct special_ids {
    std::uint32_t padding = 0, begin = 2, end = 3;
};

/// A padded batch of source sentences: [T,B], with the number of words of each.
struct source_batch {
    word_ids words;
    lengths real;
};

/// Source sentences with their translations.
template <class T>
struct training_batch {
    source_batch source;
    word_ids previous;               // [S,B] the target word before each step: <s> y_1 … y_n
    ops::expected_words<T> targets;  // [S,B] the expected word: y_1 … y_n </s>, weight 1, padding 0
    std::size_t target_words = 0;    // the number of weights that are 1

    /// The number of steps of each target sentence, including the end word.
    lengths target_lengths() const
    {
        const std::size_t S = targets.words.steps, B = targets.words.batch;
        std::vector<std::size_t> steps(B, 0);
        for (std::size_t i = 0; i < std::min(S * B, targets.weights.size()); ++i) {
            if (targets.weights[i] != T(0)) steps[i % B] = i / B + 1;
        }
        return lengths(std::move(steps));
    }
};

/// A source batch. The end word is appended to every sentence, as a position to attend to after the last word.
inline source_batch make_source(std::span<const id_sentence* const> sentences, const special_ids& special = {})
{
    std::size_t longest = 0;
    for (const id_sentence* sentence : sentences) longest = std::max(longest, sentence->size() + 1);
    source_batch batch{word_ids(longest, sentences.size(), special.padding), {}};
    std::vector<std::size_t> real(sentences.size());
    for (std::size_t b = 0; b < sentences.size(); ++b) {
        const id_sentence& words = *sentences[b];
        for (std::size_t t = 0; t < words.size(); ++t) batch.words(t, b) = words[t];
        batch.words(words.size(), b) = special.end;
        real[b] = words.size() + 1;
    }
    batch.real = lengths(std::move(real));
    return batch;
}

/// A training batch, in which targets[b] is the translation of sources[b]. Throws shape_error if their numbers differ.
template <class T>
training_batch<T> make_training_batch(std::span<const id_sentence* const> sources,
                                      std::span<const id_sentence* const> targets, const special_ids& special = {})
{
    require_shape<1>("make_training_batch", "the list of targets", {targets.size()}, {sources.size()},
                     "one translation for each source");
    std::size_t longest = 0;
    for (const id_sentence* sentence : targets) longest = std::max(longest, sentence->size() + 1);
    const std::size_t B = targets.size();
    training_batch<T> batch{make_source(sources, special),
                            word_ids(longest, B, special.padding),
                            {word_ids(longest, B, special.padding), std::vector<T>(longest * B, T(0))},
                            0};
    for (std::size_t b = 0; b < B; ++b) {
        const id_sentence& words = *targets[b];
        for (std::size_t s = 0; s <= words.size(); ++s) {
            batch.previous(s, b) = s == 0 ? special.begin : words[s - 1];
            batch.targets.words(s, b) = s == words.size() ? special.end : words[s];
            batch.targets.weights[s * B + b] = T(1);
        }
        batch.target_words += words.size() + 1;
    }
    return batch;
}

/// The maximum batch size: a number of sentence pairs or, if `tokens` is not 0, of positions, including padding and end
/// words. A longer pair becomes a separate batch.
struct batch_limits {
    std::size_t pairs = 64, tokens = 0;
};

/// The batches of an epoch, as lists of pairs: in random order, but with pairs of similar length together.
/// source_words(i) and target_words(i) return the numbers of words of pair i. Throws heed::error if both limits are 0.
template <class SourceWords, class TargetWords>
std::vector<std::vector<std::size_t>> shuffled_batches_of(std::size_t pairs, const SourceWords& source_words,
                                                          const TargetWords& target_words, const batch_limits& limits,
                                                          std::uint64_t stream)
{
    if (limits.pairs == 0 && limits.tokens == 0) throw error("a batch of 0 sentence pairs; allow at least one");
    const auto positions = [&](std::size_t i) { return std::max(source_words(i), target_words(i)) + 1; };
    std::vector<std::size_t> order(pairs);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto shuffle = [stream](auto& items, std::uint64_t round) {
        for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i, mix(stream + round), i)]);
    };
    shuffle(order, 0);
    // Sorting the whole epoch would always put the same sentences together; sorting within a pool saves nearly as much.
    std::size_t usual = limits.pairs;
    if (limits.tokens != 0) {
        std::size_t all = 1;
        for (const std::size_t i : order) all += positions(i);
        usual = std::max<std::size_t>(
            1, static_cast<std::size_t>(static_cast<double>(limits.tokens) / static_cast<double>(all) *
                                        static_cast<double>(order.size())));
    }
    const std::size_t pool = 64 * std::min(usual, order.size());
    std::vector<std::vector<std::size_t>> batches;
    for (std::size_t first = 0; first < order.size(); first += pool) {
        const std::size_t last = std::min(order.size(), first + pool);
        std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first),
                         order.begin() + static_cast<std::ptrdiff_t>(last), [&](std::size_t a, std::size_t b) {
                             return std::pair(target_words(a), source_words(a)) <
                                    std::pair(target_words(b), source_words(b));
                         });
        for (std::size_t i = first; i < last;) {
            std::size_t end = i, longest = 0;
            for (; end < last; ++end) {
                longest = std::max(longest, positions(order[end]));
                const std::size_t together = end - i + 1;
                if (limits.tokens == 0 ? together > limits.pairs : together > 1 && together * longest > limits.tokens)
                    break;
            }
            batches.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(i),
                                 order.begin() + static_cast<std::ptrdiff_t>(end));
            i = end;
        }
    }
    shuffle(batches, 1);
    return batches;
}

/// As above, for sentences in memory. Throws heed::error if the numbers of sources and targets differ.
inline std::vector<std::vector<std::size_t>> shuffled_batches(const std::vector<id_sentence>& sources,
                                                              const std::vector<id_sentence>& targets,
                                                              const batch_limits& limits, std::uint64_t stream)
{
    if (sources.size() != targets.size())
        throw error("sentence pairs: " + counted(sources.size(), "source") + ", but " +
                    counted(targets.size(), "target"));
    return shuffled_batches_of(
        targets.size(), [&](std::size_t i) { return sources[i].size(); },
        [&](std::size_t i) { return targets[i].size(); }, limits, stream);
}

inline std::vector<std::vector<std::size_t>> shuffled_batches(const std::vector<id_sentence>& sources,
                                                              const std::vector<id_sentence>& targets,
                                                              std::size_t batch_size, std::uint64_t stream)
{
    return shuffled_batches(sources, targets, batch_limits{batch_size, 0}, stream);
}

}  // namespace heed::inline HEED_TARGET::seq2seq
