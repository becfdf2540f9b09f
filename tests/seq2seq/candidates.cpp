// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/candidates.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed_kit/text/lexicon.hpp>
#include <heed_kit/text/phrases.hpp>
#include <support/approx.hpp>
#include <support/sentences.hpp>

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;
using ids = std::vector<std::uint32_t>;

namespace {

const sizes small{12, 11, 6, 5, 4};
const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {9}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5}, {8}};

}  // namespace

TEST_CASE("candidate lists consist of frequent words, translations of the batch's words, and references")
{
    std::vector<ids> translations(10);
    translations[4] = {9, 8, 7};
    translations[9] = {6, 100};
    const candidate_lists lists(5, 2, translations);
    CHECK(lists.of(make_source(pointers({{4, 5}})), 11) == ids{0, 1, 2, 3, 4, 8, 9});
    CHECK(lists.of(make_source(pointers({{5}, {9, 11}})), 11) ==
          ids{0, 1, 2, 3, 4, 6});  // 100 is not in the vocabulary
    CHECK(candidate_lists(0, 2, translations).of(make_source(pointers({{5}})), 11) == ids{0, 2, 3});
    const auto batch = make_training_batch<double>(pointers({{4}}), pointers({{10, 5}}));
    CHECK(lists.of(batch, 11) == ids{0, 1, 2, 3, 4, 5, 8, 9, 10});
    const auto learned = text::lexicon::of_links(std::vector<ids>{{4}}, std::vector<ids>{{7, 9}},
                                                 std::vector<std::vector<std::pair<int, int>>>{{{0, 0}, {0, 1}}});
    CHECK(candidate_lists(4, 1, learned).of(make_source(pointers({{4}})), 11) == ids{0, 1, 2, 3, 7});
}

TEST_CASE("candidate lists with phrases: only phrases within a sentence count")
{
    // "4 5" is 7 8, although 4 alone is 6 and 5 alone has no translation.
    const auto phrases = text::phrase_table::learn(
        std::vector<ids>{{4, 5}, {4, 9}, {9, 4, 5}}, std::vector<ids>{{7, 8}, {6, 10}, {10, 8, 7}},
        std::vector<std::vector<std::pair<int, int>>>{
            {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, {{0, 0}, {1, 1}}, {{0, 0}, {1, 1}, {2, 1}, {2, 2}}});
    candidate_lists lists(4, 0, std::vector<ids>());
    lists.add_phrases(5, phrases);
    CHECK(lists.of(make_source(pointers({{4, 5}})), 11) == ids{0, 1, 2, 3, 6, 7, 8});
    CHECK(lists.of(make_source(pointers({{5, 4}})), 11) == ids{0, 1, 2, 3, 6});
    CHECK(lists.of(make_source(pointers({{4}, {5}})), 11) == ids{0, 1, 2, 3, 6});  // not across sentences
    CHECK(lists.of(make_source(pointers({{5}, {4, 5}})), 8) == ids{0, 1, 2, 3, 6, 7});
    lists.add_phrases(1, phrases);
    CHECK(lists.of(make_source(pointers({{4, 5}})), 11) == ids{0, 1, 2, 3, 6, 7});
    const auto batch = make_training_batch<double>(pointers({{4, 5}}), pointers({{9}}));
    CHECK(lists.of(batch, 11) == ids{0, 1, 2, 3, 6, 7, 9});
}

TEST_CASE("training with candidates has the loss of the restricted softmax, and its gradients")
{
    auto model = make_translator<double>(3, small, attentions::temporal_factory{});
    const auto batch = make_training_batch<double>(pointers(sources), pointers(targets));
    const ids some{0, 3, 4, 5, 6, 7, 8};
    const nn::dropout none;
    // The same loss from forced decoding with the output layer restricted to these words.
    auto decoding = decode<double>(model, batch.source);
    decoding->restrict_to(some);
    double expected = 0;
    for (const auto& each : force<double>(*decoding, batch.source.real, pointers(targets), {.with_weights = false}))
        expected -= each.log_probability();
    CHECK(model.loss(batch, 0.0, none, &some).data()[0] == support::approx(expected));
    CHECK(expected < model.loss(batch).data()[0]);

    ad::tape<double> on;
    const auto lifted = ad::lift(on, model);
    const auto loss = lifted.loss(batch, 0.0, none, &some);
    CHECK(loss.data()[0] == support::approx(expected));
    on.backward(loss);
    const auto dW = on.gradient(lifted.decoder.readout.W_o);
    const auto db = on.gradient(lifted.decoder.readout.b);
    const auto slope = [&](double& x) {
        const double before = x, h = 1e-5;
        x = before + h;
        const double above = model.loss(batch, 0.0, none, &some).data()[0];
        x = before - h;
        const double below = model.loss(batch, 0.0, none, &some).data()[0];
        x = before;
        return (above - below) / (2 * h);
    };
    const std::size_t V = small.target_vocabulary;
    for (std::size_t w = 0; w < V; ++w) {
        CHECK(db.data[w] == support::approx(slope(model.decoder.readout.b(w)), support::gradient_tolerance<double>));
        CHECK(dW.data[2 * V + w] ==
              support::approx(slope(model.decoder.readout.W_o(2, w)), support::gradient_tolerance<double>));
    }
    CHECK(db.data[1] == 0);  // not a candidate
    CHECK(db.data[3] != 0);

    ids all;
    for (std::uint32_t w = 0; w < V; ++w) all.push_back(w);
    CHECK(model.loss(batch, 0.1, none, &all).data()[0] == support::approx(model.loss(batch, 0.1).data()[0]));
    // Words of weight 0 need not be candidates.
    auto padded = batch;
    std::size_t ignored = 0;
    for (std::size_t i = 0; i < padded.targets.weights.size(); ++i) {
        if (padded.targets.weights[i] != 0) continue;
        padded.targets.words.ids[i] = static_cast<std::uint32_t>(-100);
        ++ignored;
    }
    CHECK(ignored > 0);
    CHECK(model.loss(padded, 0.0, none, &some).data()[0] == model.loss(batch, 0.0, none, &some).data()[0]);
    CHECK(model.loss(padded).data()[0] == model.loss(batch).data()[0]);
    const ids too_few{0, 3, 4, 5, 6, 7};
    CHECK_THROWS_WITH_AS(model.loss(batch, 0.0, none, &too_few),
                         "candidates: word 8 of a reference is not in the list; in training the list must contain the "
                         "references' words",
                         error);
}
