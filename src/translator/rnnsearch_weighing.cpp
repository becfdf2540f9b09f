// SPDX-License-Identifier: BSD-3-Clause

#include <cmath>
#include <numeric>

#include <heed/combine/gated.hpp>
#include <heed/combine/grouped_sum.hpp>
#include <heed/normalize/entmax15.hpp>
#include <heed/normalize/fading_temporal.hpp>
#include <heed/normalize/sigmoid.hpp>
#include <heed/normalize/sparsemax.hpp>
#include <heed/score/additive_grouped.hpp>

#include "rnnsearch_around.hpp"

// Bahdanau et al.'s score, with another way from scores to weights or from weights to a context.
namespace heed::translator {

std::unique_ptr<system> detail::make_rnnsearch_weighing(const options& how, std::size_t source_words,
                                                        std::size_t target_words)
{
    using heed::attention;
    using heed::random_source;
    using heed::seq2seq::sizes;
    namespace nn = heed::nn;
    namespace normalize = heed::normalize;
    namespace combine = heed::combine;

    const auto additive = [](random_source& random, const sizes& n) {
        return heed::seq2seq::attentions::additive<float>::score(random, n);
    };
    const auto with = [&](const auto& make_attention) {
        return make_rnnsearch_around(make_attention, how, source_words, target_words);
    };
    const auto normalized = [&](const auto& normalizer) {
        return with([&](random_source& random, const sizes& n) {
            return attention{additive(random, n), normalizer, combine::weighted_sum{}};
        });
    };
    if (how.attention == "sparsemax") return normalized(normalize::sparsemax{});
    if (how.attention == "entmax") return normalized(normalize::entmax15{});
    if (how.attention == "sigmoid") return normalized(normalize::sigmoid{-std::log(12.0)});  // 12 words are usual
    if (how.attention == "fading-temporal") return normalized(normalize::fading_temporal{0.5, 0.5});
    if (how.attention == "gated") {
        return with([&](random_source& random, const sizes& n) {
            auto score = additive(random, n);
            auto W = nn::glorot<float>(random, n.hidden, 1);
            return attention{std::move(score), normalize::softmax{}, combine::gated{std::move(W), nn::zeros<float>(1)}};
        });
    }
    return with([](random_source& random, const sizes& n) {  // grouped
        auto W = nn::glorot<float>(random, n.hidden, n.alignment);
        auto U = nn::glorot<float>(random, n.width(), n.alignment);
        auto V = nn::glorot<float>(random, n.alignment, std::gcd(n.width(), std::size_t{8}));
        return attention{heed::score::additive_grouped{std::move(W), std::move(U), std::move(V)}, normalize::softmax{},
                         combine::grouped_sum{}};
    });
}

}  // namespace heed::translator
