// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/decoding.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/core/random.hpp>
#include <heed/kernels/top_k_words.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/ensemble.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/searches.hpp>
#include <support/sentences.hpp>

// The interface that all searches need of a model, for heed's models with each kind of state.

using namespace heed;
using namespace heed::seq2seq;
using namespace support::searches;
using support::pointers;

TEST_CASE("a restricted output layer has probabilities among its words, with their ids")
{
    const auto batch = make_source(pointers(sources));
    const std::vector<std::uint32_t> some{3, 5, 6, 9};
    const word_ids begin(1, sources.size(), special_ids{}.begin);
    auto all = decode<double>(first, batch), few = decode<double>(first, batch);
    few->restrict_to(some);
    CHECK(few->vocabulary() == 4);
    all->step(begin);
    few->step(begin);
    candidates<double> next;
    few->propose(12, std::vector<std::uint32_t>{5, 3, 4, 9}, next);
    CHECK(next.most == 4);
    for (std::size_t r = 0; r < sources.size(); ++r) {
        const double* logits = all->logits()[r].data;
        std::vector<double> there;
        for (const std::uint32_t w : some) there.push_back(logits[w]);
        const auto p = probabilities(there.data(), 4);
        for (std::size_t k = 0; k < 4; ++k) {
            const auto place = std::find(some.begin(), some.end(), next.words[4 * r + k]) - some.begin();
            REQUIRE(place < 4);
            CHECK(std::exp(next.log_p[4 * r + k]) == support::approx(p[static_cast<std::size_t>(place)]));
        }
    }
    CHECK(std::isinf(next.log_p_also[2]));
    CHECK(!std::isinf(next.log_p_also[3]));
    auto both = together(batch, averaging::arithmetic, first, second);
    both.restrict_to(some);
    for (const auto& of_sentence : beam<double>(both, batch.real)) {
        for (const std::uint32_t word : of_sentence.at(0).words)
            CHECK(std::find(some.begin(), some.end(), word) != some.end());
    }
    CHECK_THROWS_AS(few->restrict_to({5, 5}), error);
    CHECK_THROWS_AS(few->restrict_to({5, 11}), error);
}

TEST_CASE(
    "with LSTM cells, step by step is all at once; a beam of one is greedy; hypotheses carry both parts of their state")
{
    const auto model =
        make_translator<double>(3, sizes{7, 8, 4, 3, 5}, attentions::temporal_factory{}, nullptr, nn::lstm_factory{});
    const std::vector<id_sentence> from{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}}, to{{4, 5}, {7, 6, 5, 4}, {5}, {4}};
    const auto examples = make_training_batch<double>(pointers(from), pointers(to));
    ad::tape<double> on;
    const double loss = ad::lift(on, model).loss(examples).data()[0];
    const auto led = force<double>(model, examples.source, pointers(to));
    double sum = 0;
    for (const auto& each : led) sum -= each.log_probability();
    CHECK(sum == doctest::Approx(loss).epsilon(1e-12));

    const auto simple = greedy<double>(model, examples.source);
    const auto one = beam<double>(model, examples.source, {.width = 1});
    const auto several = beam<double>(model, examples.source, {.width = 5});
    std::vector<id_sentence> best;
    for (std::size_t b = 0; b < 4; ++b) {
        CHECK(one[b].front().words == simple[b].words);
        best.push_back(several[b].front().words);
    }
    // If a hypothesis lost its cell, its probability would differ from that of forced decoding.
    const auto again = force<double>(model, examples.source, pointers(best));
    for (std::size_t b = 0; b < 4; ++b) {
        CHECK(again[b].log_probability() == support::approx(several[b].front().log_probability));
    }
}

TEST_CASE("an encoded source of another batch, or one already searched, is rejected")
{
    const auto model = lively(5, fixed_context{});
    const std::vector<id_sentence> two(sources.begin(), sources.begin() + 2),
        three(sources.begin(), sources.begin() + 3);
    const auto few = make_source(pointers(two)), more = make_source(pointers(three));
    const std::string reason = ": 3 sentences, but the model is decoding 2 rows; give the lengths of its batch, and "
                               "make a new decoding for each search";
    const auto at_work = decode<double>(model, few);
    CHECK_THROWS_WITH_AS(beam<double>(*at_work, more.real), ("beam" + reason).c_str(), error);
    CHECK_THROWS_WITH_AS(greedy<double>(*at_work, more.real), ("greedy" + reason).c_str(), error);
    CHECK_THROWS_WITH_AS(force<double>(*at_work, more.real, pointers(three)), ("force" + reason).c_str(), error);
    const auto of_three = decode<double>(model, more);
    CHECK_THROWS_AS(beam<double>(*of_three, few.real), error);
    CHECK_THROWS_AS(greedy<double>(*of_three, few.real), error);
    CHECK_THROWS_AS(force<double>(*of_three, few.real, pointers(two)), error);
    CHECK(beam<double>(*of_three, more.real).size() == 3);  // still unused
    const auto one = make_source(pointers({{4}}));
    const std::string of_one = ": 1 sentence, but the model is decoding 2 rows; ";
    try {
        greedy<double>(*at_work, one.real);
        FAIL("was not rejected");
    } catch (const error& refusal) {
        CHECK(std::string(refusal.what()).starts_with("greedy" + of_one));
    }
}

TEST_CASE_TEMPLATE("the fused log-softmax equals sorting at every size", T, float, double)
{
    auto draw = [drawn = std::uint64_t{0}]() mutable { return static_cast<T>(uniform(3, drawn++) * 8 - 4); };
    for (const std::size_t V : {1u, 2u, 7u, 15u, 16u, 17u, 31u, 64u, 100u, 257u, 1000u}) {
        for (const std::size_t most : {0u, 1u, 2u, 5u, 12u, 40u, 300u}) {
            if (most > V) continue;
            const std::size_t R = 3;
            std::vector<T> logits(R * V), bias(V);
            for (T& x : logits) x = draw();
            for (T& x : bias) x = draw();
            if (V > 20) logits[V + 20] = logits[V + 3] = logits[V + 11] = T(9);  // ties: in order of their ids
            if (V > 4) logits[2] = -std::numeric_limits<T>::infinity();
            for (const bool biased : {false, true}) {
                std::vector<std::uint32_t> words(R * most), also{0, static_cast<std::uint32_t>(V - 1), 1000};
                std::vector<T> log_p(R * most), log_p_also(R);
                kernels::log_softmax_top<T>(R, V, logits.data(), biased ? bias.data() : nullptr,
                                            {most, also.data(), words.data(), log_p.data(), log_p_also.data()});
                for (std::size_t r = 0; r < R; ++r) {
                    std::vector<T> x(V);
                    double sum = 0;
                    for (std::size_t i = 0; i < V; ++i) {
                        x[i] = logits[r * V + i] + (biased ? bias[i] : T(0));
                        sum += std::exp(static_cast<double>(x[i]));
                    }
                    std::vector<std::uint32_t> order(V);
                    for (std::size_t i = 0; i < V; ++i) order[i] = static_cast<std::uint32_t>(i);
                    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] > x[b]; });
                    for (std::size_t k = 0; k < most; ++k) {
                        CHECK(words[r * most + k] == order[k]);
                        const double expected = static_cast<double>(x[order[k]]) - std::log(sum);
                        if (std::isinf(expected)) {
                            CHECK(std::isinf(log_p[r * most + k]));
                        } else {
                            CHECK(log_p[r * most + k] == support::approx(expected, support::tolerance<T>));
                        }
                    }
                    if (also[r] < V) {
                        CHECK(log_p_also[r] ==
                              support::approx(static_cast<double>(x[also[r]]) - std::log(sum), support::tolerance<T>));
                    } else {
                        CHECK(log_p_also[r] == -std::numeric_limits<T>::infinity());
                    }
                }
            }
        }
    }
}
