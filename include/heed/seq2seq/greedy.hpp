// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include <heed/seq2seq/batch.hpp>

namespace heed::seq2seq {

/// A translation and where the model looked for each of its words.
template <class T>
struct translation {
    id_sentence words;  // without the end word
    std::vector<std::vector<T>>
        weights;  // [words + 1][source words + 1]; the last of each is the end word. Empty without attention
};

/// The weights of one row over its real positions; per dimension, their mean over the dimensions.
template <class T, class Weights>
std::vector<T> row_of_weights(const Weights& weights, std::size_t row, std::size_t real)
{
    const auto all = view_of(weights);
    std::vector<T> result(real);
    if constexpr (rank_of<Weights> == 2) {
        std::copy_n(all.data + row * all.shape[1], real, result.begin());
    } else {
        const std::size_t D = all.shape[2];
        for (std::size_t t = 0; t < real; ++t) {
            T sum = 0;
            const T* at = all.data + (row * all.shape[1] + t) * D;
            for (std::size_t d = 0; d < D; ++d) sum += at[d];
            result[t] = sum / static_cast<T>(D);
        }
    }
    return result;
}

/// Greedy decoding: the most probable word at every step, until the end word.           SPEC X1, D8
///
/// A translation has at most `at_most(source words)` words. Weights per dimension are averaged (SPEC Q10).
template <class T, class Model>
std::vector<translation<T>> greedy(const Model& model, const source_batch& source, bool with_weights = false,
                                   const special_ids& special = {})
{
    const std::size_t B = source.words.batch;
    const auto encoded = model.encoder.encode(source);
    const auto start = model.decoder.open(encoded, source.real);
    auto state = start.state;
    auto past = model.decoder.attention.start(start.memory);
    word_ids previous(1, B, special.begin);
    std::vector<translation<T>> results(B);
    std::vector<char> over(B, 0);
    const std::size_t longest = 2 * source.words.steps + 10;
    for (std::size_t i = 0, open = B; i < longest && open > 0; ++i) {
        auto next = model.decoder.step(start.memory, state, past, previous);
        const std::size_t V = shape_of(next.logits)[2];
        for (std::size_t b = 0; b < B; ++b) {
            if (over[b]) continue;
            const T* row = next.logits.data() + b * V;
            const auto word = static_cast<std::uint32_t>(std::max_element(row, row + V) - row);
            previous(0, b) = word;
            if constexpr (requires { next.seen.weights; }) {
                if (with_weights) results[b].weights.push_back(row_of_weights<T>(next.seen.weights, b, source.real[b]));
            }
            if (word == special.end) {
                over[b] = 1;
                --open;
            } else {
                results[b].words.push_back(word);
            }
        }
        state = std::move(next.state);
        past = std::move(next.seen.state);
    }
    return results;
}

}  // namespace heed::seq2seq
