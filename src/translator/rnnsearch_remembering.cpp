// SPDX-License-Identifier: BSD-3-Clause

#include <heed/nn/gated_coverage.hpp>
#include <heed/nn/gru.hpp>
#include <heed/score/with_fertility.hpp>
#include <heed/score/with_gated_coverage.hpp>
#include <heed/score/with_location.hpp>
#include <heed/score/with_neighbours.hpp>
#include <heed/score/with_positions.hpp>
#include <heed/score/with_recurrence.hpp>

#include "rnnsearch_around.hpp"

// Bahdanau et al.'s score with one thing more that it reads: where it has looked before. Each memory is a policy laid
// around the score, and nothing else of RNNsearch changes.
namespace heed::translator {

std::unique_ptr<system> detail::make_rnnsearch_remembering(const options& how, std::size_t source_words,
                                                           std::size_t target_words)
{
    using heed::random_source;
    using heed::seq2seq::sizes;
    namespace nn = heed::nn;
    namespace score = heed::score;

    const auto with = [&](const auto& make_score) {
        return make_rnnsearch_around(
            [&](random_source& random, const sizes& n) {
                auto base = heed::seq2seq::attentions::additive<float>::score(random, n);
                return heed::attention{make_score(random, n, std::move(base)), heed::normalize::softmax{},
                                       heed::combine::weighted_sum{}};
            },
            how, source_words, target_words);
    };
    if (how.attention == "location-aware") {
        return with([](random_source& random, const sizes& n, auto base) {
            auto filters = nn::glorot<float>(random, 10, 5);
            return score::with_location{std::move(base), std::move(filters),
                                        nn::glorot<float>(random, 10, n.alignment)};
        });
    }
    if (how.attention == "structural-biases") {
        return with([](random_source& random, const sizes& n, auto base) {
            auto last = nn::glorot<float>(random, 3, n.alignment), all = nn::glorot<float>(random, 3, n.alignment);
            score::with_neighbours markov{std::move(base), std::move(last), score::last_weights{}};
            score::with_neighbours fertile{std::move(markov), std::move(all), score::all_weights{}};
            return score::with_positions{std::move(fertile), nn::glorot<float>(random, 3, n.alignment)};
        });
    }
    if (how.attention == "fertility") {
        return with([](random_source& random, const sizes& n, auto base) {
            auto v_c = nn::small_vector<float>(random, n.alignment);
            return score::with_fertility{std::move(base), std::move(v_c), nn::small_vector<float>(random, n.width())};
        });
    }
    if (how.attention == "gated-coverage") {
        return with([](random_source& random, const sizes& n, auto base) {
            auto cell = nn::make_gated_coverage<float>(random, n.width(), n.hidden);
            auto V = nn::glorot<float>(random, cell.size(), n.alignment);
            return score::with_gated_coverage{std::move(base), std::move(V), std::move(cell)};
        });
    }
    return with([](random_source& random, const sizes& n, auto base) {  // recurrent
        auto cell = nn::make_gru<float>(random, n.embedding + n.width(), n.hidden);
        auto W_r = nn::glorot<float>(random, n.hidden, n.alignment);
        return score::with_recurrence{std::move(base), std::move(W_r), std::move(cell)};
    });
}

}  // namespace heed::translator
