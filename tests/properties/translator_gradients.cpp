// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/nn/peephole_lstm.hpp>
#include <heed/nn/rnn.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/sentences.hpp>

// Every parameter of every translator against finite differences, through encoder, attention, decoder and loss.

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;

namespace {

// Different lengths, a repeated word, and a sentence without words, where only the end token is left to attend to.
const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};

training_batch<double> batch()
{
    auto result = make_training_batch<double>(pointers(sources), pointers(targets));
    for (std::size_t i = 0; i < result.targets.weights.size(); ++i) {
        result.targets.weights[i] *= 0.5 + 0.1 * static_cast<double>(i % 7);  // uneven: no gradient cancels another
    }
    return result;
}

template <class MakeAttention, class Cells = nn::gru_factory>
void check(MakeAttention make, double smoothing, const Cells& cells = {})
{
    auto model = make_translator<double>(3, sizes{7, 8, 4, 3, 5}, make, nullptr, cells);
    const auto examples = batch();
    const auto result =
        ad::grad_check(model, [&](auto&, const auto& lifted) { return lifted.loss(examples, smoothing); });
    CHECK_MESSAGE(result, result.text());
    CHECK(result.entries == parameter_count(model));
}

}  // namespace

TEST_CASE("no attention") { check(fixed_context{}, 0); }
TEST_CASE("additive") { check(attentions::additive_factory{}, 0.1); }
TEST_CASE("additive with the previous word") { check(attentions::additive_with_word_factory{}, 0); }
TEST_CASE("per dimension") { check(attentions::per_dimension_factory{}, 0); }
TEST_CASE("temporal") { check(attentions::temporal_factory{}, 0); }

TEST_CASE("long short-term memory")
{
    check(fixed_context{}, 0.1, nn::lstm_factory{});
    check(attentions::additive_factory{}, 0.1, nn::lstm_factory{});
    check(attentions::per_dimension_factory{}, 0.1, nn::lstm_factory{});
    check(attentions::temporal_factory{}, 0.1, nn::lstm_factory{});
}

TEST_CASE("cells composed of operations")
{
    check(attentions::additive_factory{}, 0.1, nn::rnn_factory{});
    check(attentions::additive_factory{}, 0.1, nn::peephole_lstm_factory{});
}

TEST_CASE("dropout: the same stream drops the same elements, so the loss is a function with a gradient")
{
    auto model = make_translator<double>(3, sizes{7, 8, 4, 3, 5}, attentions::temporal_factory{});
    const auto examples = batch();
    const auto result = ad::grad_check(model, [&](auto&, const auto& lifted) {
        random_source random{9, 0};
        return lifted.loss(examples, 0.0, nn::dropout{0.3, &random});
    });
    CHECK_MESSAGE(result, result.text());
}
