// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/systems/choi2018.hpp>
#include <heed/seq2seq/systems/luong2015.hpp>
#include <heed/seq2seq/systems/sankaran2016.hpp>
#include <support/approx.hpp>
#include <support/sentences.hpp>
#include <support/tensors.hpp>

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

/// The same batch with other words in the padding of both sides.
training_batch<double> with_other_padding()
{
    auto other = examples;
    for (std::size_t b = 0; b < 4; ++b) {
        for (std::size_t t = other.source.real[b]; t < other.source.words.steps; ++t) other.source.words(t, b) = 2;
        for (std::size_t s = targets[b].size() + 1; s < other.previous.steps; ++s) {
            other.previous(s, b) = other.targets.words(s, b) = 6;
        }
    }
    return other;
}

std::vector<double> loss_and_gradient(const auto& model, const training_batch<double>& batch)
{
    ad::tape<double> on;
    const auto lifted = ad::lift(on, model);
    const auto loss = lifted.loss(batch, 0.1);
    on.backward(loss);
    std::vector<double> numbers{loss.data()[0]};
    for_each_parameter(lifted, [&](const std::string&, const auto& x) {
        const auto g = on.gradient(x);
        numbers.insert(numbers.end(), g.data, g.data + g.size());
    });
    return numbers;
}

void check(auto model)
{
    CHECK(loss_and_gradient(model, examples) == loss_and_gradient(model, with_other_padding()));

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
            CHECK(again[b].log_probability() == support::approx(found[b][k].log_probability));
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

TEST_CASE("coverage embeddings start from the table's row of each source word, and of no other")
{
    namespace sankaran = papers::sankaran2016;
    auto model = sankaran::translator<double>(3, small, sankaran::new_coverage<double>{3});
    const double before = model.loss(examples)();
    const std::size_t words[]{4, 5, 6, 1, 3};  // those of the sources, and the end word
    for (std::size_t v = 0; v < small.source_vocabulary; ++v) {
        auto changed = model;
        for (std::size_t k = 0; k < 3; ++k) changed.decoder.attention.table(v, k) += 1;
        CHECK((changed.loss(examples)() != before) ==
              (std::find(std::begin(words), std::end(words), v) != std::end(words)));
    }
    // The first weights are those of an attention that is given these rows as c_0.
    const auto& d = model.decoder;
    const auto source = model.encoder.encode(examples.source);
    const auto memory = d.attention.on(source.annotations, examples.source.real);
    array<double, 3> rows({4, examples.source.words.steps, 3});
    for (std::size_t b = 0; b < 4; ++b) {
        for (std::size_t t = 0; t < rows.shape()[1]; ++t) {
            for (std::size_t k = 0; k < 3; ++k) rows(b, t, k) = d.attention.table(examples.source.words(t, b), k);
        }
    }
    const auto opened = model.open(examples.source);
    const auto must = d.attention.start(memory, d.attention.score.start_from(memory, rows));
    CHECK(support::same_bits(opened.state.attention.score.coverage, must.score.coverage));
}

TEST_CASE("Luong et al. 2015: stacked LSTM, local-p with input feeding, location without, and no attention")
{
    namespace luong = papers::luong2015;
    check(luong::translator<double>(3, small, luong::new_local_p<double>{1}, luong::parts(2)));
    check(luong::translator<double>(3, small, luong::new_global<double, luong::new_location>{{5}},
                                    luong::parts_without_feeding(2)));
    check(luong::translator<double>(3, small, attentions::none<double>{}, luong::parts_without_attention(2)));
}
