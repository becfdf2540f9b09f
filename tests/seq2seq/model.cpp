// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/model.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/objective.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/tensors.hpp>

using namespace heed;
using namespace heed::seq2seq;
using support::random;

namespace {

struct of_heads {
    std::vector<int> heads;
};
struct of_hops {
    std::vector<int> hops;
};
struct of_dimensions {};

using rnnsearch = decltype(make_translator<float>(1, sizes{}, attentions::additive_factory{}));
static_assert(searchable<rnnsearch>);
static_assert(!searchable<decltype(rnnsearch::encoder)> && !searchable<int>);

constexpr std::size_t S = 2, B = 3, L = 4, V = 6;
const auto readout = random({S, B, L}, 1);
const array<double, 2> W = random({L, V}, 2);
const array<double, 1> b = random({V}, 3);
const output_layer<const array<double, 2>&, const array<double, 1>&> last{W, b};

ops::expected_words<double> expected()
{
    ops::expected_words<double> words{word_ids(S, B), {1, 0.5, 2, 1, 0, 0.25}};
    words.words.ids = {5, 3, 1, 3, 4, 5};  // 4 has weight 0
    return words;
}

/// −log softmax over `among` of the expected word at step s of row r: (1 − ε) of it, and ε spread evenly over all
/// words.
double cost(std::size_t s, std::size_t r, double smoothing, const std::vector<std::uint32_t>& among)
{
    double sum = 0, all = 0, its = 0;
    const std::uint32_t word = expected().words(s, r);
    for (const std::uint32_t v : among) {
        double score = b(v);
        for (std::size_t l = 0; l < L; ++l) score += readout(s, r, l) * W(l, v);
        sum += std::exp(score);
        all += score / static_cast<double>(among.size());
        if (v == word) its = score;
    }
    return expected().weights[s * B + r] * (std::log(sum) - (1 - smoothing) * its - smoothing * all);
}

}  // namespace

TEST_CASE("the cross-entropy of the output layer, over all words or a list, summed and per word")
{
    const std::vector<std::uint32_t> all{0, 1, 2, 3, 4, 5}, some{1, 3, 5};
    for (const double smoothing : {0.0, 0.1}) {
        for (const auto* only : {static_cast<const std::vector<std::uint32_t>*>(nullptr), &some}) {
            const auto each = heed::seq2seq::detail::cross_entropy_per_word(readout, last, expected(), smoothing, only);
            double sum = 0;
            for (std::size_t s = 0; s < S; ++s) {
                for (std::size_t r = 0; r < B; ++r) {
                    if (expected().weights[s * B + r] == 0) continue;
                    const double must = cost(s, r, smoothing, only == nullptr ? all : *only);
                    CHECK(each(s, r) == support::approx(must));
                    sum += must;
                }
            }
            CHECK(heed::seq2seq::detail::cross_entropy(readout, last, expected(), smoothing, only)() ==
                  support::approx(sum));
        }
    }
}

TEST_CASE("weights of several heads or hops, or per dimension, are reduced to one per position")
{
    using heed::seq2seq::detail::weights_per_position;
    const auto plain = random({B, 5}, 4);
    CHECK(support::same_bits(weights_per_position<of_dimensions>(plain), plain));
    const auto several = random({B, 2, 5}, 5);  // [B,n,T]
    const auto fine = random({B, 5, 2}, 6);     // [B,T,D]
    const auto of_all_heads = weights_per_position<of_heads>(several),
               of_all_hops = weights_per_position<of_hops>(several), of_all = weights_per_position<of_dimensions>(fine);
    for (std::size_t r = 0; r < B; ++r) {
        for (std::size_t t = 0; t < 5; ++t) {
            CHECK(of_all_heads(r, t) == support::approx((several(r, 0, t) + several(r, 1, t)) / 2));
            CHECK(of_all_hops(r, t) == of_all_heads(r, t));
            CHECK(of_all(r, t) == support::approx((fine(r, t, 0) + fine(r, t, 1)) / 2));
        }
    }
}

TEST_CASE("a missing row is reported")
{
    heed::seq2seq::detail::require_row("weights", 1, 2);
    CHECK_THROWS_WITH_AS(heed::seq2seq::detail::require_row("weights", 2, 2), "weights: row 2 of 2; rows count from 0",
                         error);
}
