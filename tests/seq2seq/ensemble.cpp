// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/ensemble.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/searches.hpp>
#include <support/sentences.hpp>

using namespace heed;
using namespace heed::seq2seq;
using namespace support::searches;
using support::pointers;

TEST_CASE("the probabilities of an ensemble are the arithmetic or geometric mean of its models'")
{
    const auto batch = make_source(pointers(sources));
    const word_ids begin(1, sources.size(), special_ids{}.begin);
    const std::size_t V = small.target_vocabulary;
    const std::vector<std::uint32_t> also(sources.size(), 7);
    for (const auto how : {averaging::arithmetic, averaging::geometric}) {
        auto one = decode<double>(first, batch), two = decode<double>(second, batch),
             three = decode<double>(blind, batch);
        auto all = together(batch, how, first, second, blind);
        for (decoding<double>* each : {one.get(), two.get(), three.get(), static_cast<decoding<double>*>(&all)})
            each->step(begin);
        candidates<double> next;
        all.propose(V, also, next);
        for (std::size_t r = 0; r < sources.size(); ++r) {
            std::vector<double> expected(V, how == averaging::arithmetic ? 0.0 : 1.0);
            for (decoding<double>* each : {one.get(), two.get(), three.get()}) {
                const auto p = probabilities(each->logits()[r].data, V);
                for (std::size_t w = 0; w < V; ++w) {
                    if (how == averaging::arithmetic) {
                        expected[w] += p[w] / 3;
                    } else {
                        expected[w] *= std::cbrt(p[w]);
                    }
                }
            }
            double sum = 0, whole = 0;
            for (const double p : expected) sum += p;
            for (std::size_t k = 0; k < V; ++k) {
                CHECK(std::exp(next.log_p[r * V + k]) == support::approx(expected[next.words[r * V + k]] / sum));
                if (k > 0) CHECK(next.log_p[r * V + k] <= next.log_p[r * V + k - 1]);
                whole += std::exp(next.log_p[r * V + k]);
            }
            CHECK(whole == support::approx(1));
            CHECK(std::exp(next.log_p_also[r]) == support::approx(expected[7] / sum));
            const auto joint = probabilities(all.logits()[r].data, V);
            for (std::size_t w = 0; w < V; ++w) CHECK(joint[w] == support::approx(expected[w] / sum));
            std::vector<double> a, b, both;
            one->weights(r, a);
            two->weights(r, b);
            all.weights(r, both);
            REQUIRE(both.size() == sources[r].size() + 1);
            for (std::size_t t = 0; t < both.size(); ++t) CHECK(both[t] == support::approx((a[t] + b[t]) / 2));
        }
    }
}

TEST_CASE("an ensemble searches like one model")
{
    const auto batch = make_source(pointers(sources));
    beam_options how;
    how.width = 4;
    how.best = 2;
    how.with_weights = true;
    // Two copies of a model agree.
    auto twins = together(batch, averaging::arithmetic, first, first);
    const auto of_twins = beam<double>(twins, batch.real, how), of_one = beam<double>(first, batch, how);
    // Different models: forced decoding by the same ensemble agrees with the search.
    auto all = together(batch, averaging::arithmetic, first, second, blind);
    const auto found = beam<double>(all, batch.real, how);
    std::vector<const id_sentence*> best;
    for (const auto& of_sentence : found) best.push_back(&of_sentence[0].words);
    auto again = together(batch, averaging::arithmetic, first, second, blind);
    const auto forced = force<double>(again, batch.real, best);
    bool differs = false;
    for (std::size_t b = 0; b < sources.size(); ++b) {
        for (std::size_t k = 0; k < 2; ++k) {
            CHECK(of_twins[b][k].words == of_one[b][k].words);
            CHECK(of_twins[b][k].score == support::approx(of_one[b][k].score));
        }
        CHECK(found[b][0].log_probability == support::approx(forced[b].log_probability()));
        REQUIRE(found[b][0].weights.size() == forced[b].weights.size());
        for (std::size_t j = 0; j < forced[b].weights.size(); ++j) {
            for (std::size_t t = 0; t <= sources[b].size(); ++t)
                CHECK(found[b][0].weights[j][t] == support::approx(forced[b].weights[j][t]));
        }
        differs = differs || found[b][0].words != of_one[b][0].words;
    }
    CHECK(differs);
    auto greedily = together(batch, averaging::geometric, first, second);
    const auto simple = greedy<double>(greedily, batch.real);
    how.width = how.best = 1;
    auto narrow = together(batch, averaging::geometric, first, second);
    const auto of_beam = beam<double>(narrow, batch.real, how);
    for (std::size_t b = 0; b < sources.size(); ++b) CHECK(of_beam[b][0].words == simple[b].words);
}

TEST_CASE("models that do not fit together are rejected")
{
    const auto batch = make_source(pointers(sources));
    const auto other = make_translator<double>(1, sizes{12, 13, 6, 5, 4}, attentions::additive_factory{});
    CHECK_THROWS_WITH_AS(together(batch, averaging::arithmetic, first, other),
                         "ensemble: models of 11 and 13 target words; they must share the target vocabulary", error);
    std::vector<std::unique_ptr<decoding<double>>> members;
    CHECK_THROWS_WITH_AS(ensemble<double>(std::move(members)), "ensemble: there are no models; give at least one",
                         error);
}
