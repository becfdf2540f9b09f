// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/systems/choi2018.hpp>
#include <heed/seq2seq/systems/luong2015.hpp>
#include <heed/seq2seq/systems/sankaran2016.hpp>
#include <support/sentences.hpp>

// The papers' whole systems, small: gradients through all of them, step by step against all at once, and a beam whose
// hypotheses take every part of their state along.

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;

namespace {

// Different lengths, a repeated word, and a sentence without words: only its end is left to attend to.
const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};
const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));

constexpr sizes small{7, 8, 4, 3, 5};

void check(auto model)
{
    const auto result = ad::grad_check(model, [&](auto&, const auto& lifted) { return lifted.loss(examples, 0.1); });
    CHECK_MESSAGE(result, result.text());
    CHECK(result.entries == parameter_count(model));

    // Far from uniform, so that hypotheses branch and differ.
    for_each_parameter(model, [](const std::string&, auto& x) {
        for (double& w : x) w *= 3;
    });
    ad::tape<double> on;
    const double loss = ad::lift(on, model).loss(examples).data()[0];
    double led = 0;
    for (const auto& each : force<double>(model, examples.source, pointers(targets))) led -= each.log_probability();
    CHECK(led == doctest::Approx(loss).epsilon(1e-12));

    const auto found = beam<double>(model, examples.source, {.width = 4, .best = 3});
    for (std::size_t k = 0; k < 3; ++k) {
        std::vector<id_sentence> words;
        for (const auto& of_sentence : found) words.push_back(of_sentence.at(k).words);
        const auto again = force<double>(model, examples.source, pointers(words));
        for (std::size_t b = 0; b < 4; ++b) {
            CHECK(again[b].log_probability() == doctest::Approx(found[b][k].log_probability).epsilon(1e-9));
        }
    }
}

}  // namespace

TEST_CASE("Choi et al. 2018: LSTM, a weight per dimension, contextualised embeddings on both sides")
{
    namespace choi = papers::choi2018;
    check(choi::translator<double>(3, small, attentions::per_dimension<double>{}, choi::parts_with_context()));
}

TEST_CASE("Sankaran et al. 2016: conditional GRU with temporal attention, and with coverage embeddings")
{
    namespace sankaran = papers::sankaran2016;
    check(sankaran::translator<double>(3, small));
    check(sankaran::translator<double>(3, small, sankaran::new_coverage<double>{3}));
}

TEST_CASE("Luong et al. 2015: stacked LSTM, local-p with input feeding, location without, and no attention")
{
    namespace luong = papers::luong2015;
    check(luong::translator<double>(3, small, luong::new_local_p<double>{1}, luong::parts(2)));
    check(luong::translator<double>(3, small, luong::new_global<double, luong::new_location>{{5}},
                                    luong::parts_without_feeding(2)));
    check(luong::translator<double>(3, small, attentions::none<double>{}, luong::parts_without_attention(2)));
}
