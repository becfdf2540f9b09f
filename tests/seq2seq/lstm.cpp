// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/nn/stacked.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/sentences.hpp>
#include <support/tensors.hpp>

// Translators with LSTM cells on both sides: the encoder against plain loops, gradients through the whole, and
// searches.

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;
using support::random;

namespace {

// Different lengths, a repeated word, and a sentence without words: only its end is left to attend to.
const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};

constexpr sizes small{7, 8, 4, 3, 5};

template <class MakeAttention, class Cells = nn::new_lstm>
auto translator_around(const MakeAttention& make, const Cells& cells = {})
{
    return make_translator<double>(3, small, make, nullptr, cells);
}

template <class MakeAttention>
void check_gradient(const MakeAttention& make)
{
    auto model = translator_around(make);
    const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));
    const auto result = ad::grad_check(model, [&](auto&, const auto& lifted) { return lifted.loss(examples, 0.1); });
    CHECK_MESSAGE(result, result.text());
    CHECK(result.entries == parameter_count(model));
}

/// The outputs of an LSTM layer over one sentence, number by number; words in the order in which they are read.
std::vector<std::vector<double>> read(const auto& unit, const array<double, 1>& start,
                                      const std::vector<std::vector<double>>& words)
{
    const std::size_t H = start.size();
    const auto sigmoid = [](double a) { return 1 / (1 + std::exp(-a)); };
    std::vector<double> h(start.begin(), start.end()), c(H);
    std::vector<std::vector<double>> outputs;
    for (const auto& x : words) {
        const auto sum = [&](std::size_t column) {
            double all = unit.b(column);
            for (std::size_t k = 0; k < x.size(); ++k) all += x[k] * unit.W(k, column);
            for (std::size_t k = 0; k < H; ++k) all += h[k] * unit.U(k, column);
            return all;
        };
        std::vector<double> next(H);
        for (std::size_t j = 0; j < H; ++j) {
            c[j] = sigmoid(sum(H + j)) * c[j] + sigmoid(sum(j)) * std::tanh(sum(3 * H + j));
            next[j] = sigmoid(sum(2 * H + j)) * std::tanh(c[j]);
        }
        h = next;
        outputs.push_back(h);
    }
    return outputs;
}

}  // namespace

TEST_CASE("the bidirectional encoder is its loops, whatever the padding")
{
    constexpr std::size_t V = 7, E = 3, H = 4;
    const auto unit = [](std::uint64_t stream) {
        return nn::lstm{random({E, 4 * H}, stream), random({4 * H}, stream + 1), random({H, 4 * H}, stream + 2)};
    };
    const bidirectional_encoder encoder{random({V, E}, 1), unit(10), unit(20), nn::trained_start{random({H}, 30)},
                                        nn::trained_start{random({H}, 31)}};
    const auto batch = make_training_batch<double>(pointers(sources), pointers(targets)).source;
    const auto is = encoder.encode(batch);
    for (std::size_t b = 0; b < 4; ++b) {
        const std::size_t n = batch.real[b];
        std::vector<std::vector<double>> words(n, std::vector<double>(E));
        for (std::size_t t = 0; t < n; ++t) {
            for (std::size_t k = 0; k < E; ++k) words[t][k] = encoder.embedding(batch.words(t, b), k);
        }
        const auto forwards = read(encoder.forward, encoder.forward_start.value, words);
        std::reverse(words.begin(), words.end());
        auto backwards = read(encoder.backward, encoder.backward_start.value, words);
        std::reverse(backwards.begin(), backwards.end());
        for (std::size_t t = 0; t < n; ++t) {
            for (std::size_t j = 0; j < H; ++j) {
                CHECK(is.annotations(b, t, j) == doctest::Approx(forwards[t][j]).epsilon(1e-13));
                CHECK(is.annotations(b, t, H + j) == doctest::Approx(backwards[t][j]).epsilon(1e-13));
            }
        }
        for (std::size_t j = 0; j < H; ++j) CHECK(is.start(b, j) == doctest::Approx(backwards[0][j]).epsilon(1e-13));
    }
}

TEST_CASE("every parameter has the gradient of finite differences")
{
    check_gradient(attentions::none<double>{});
    check_gradient(attentions::additive<double>{});
    check_gradient(attentions::per_dimension<double>{});
    check_gradient(attentions::temporal<double>{});
}

TEST_CASE("step by step is all at once; a beam of one is greedy; hypotheses carry both parts of their state")
{
    const auto model = translator_around(attentions::temporal<double>{});
    const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));
    ad::tape<double> on;
    const double loss = ad::lift(on, model).loss(examples).data()[0];
    const auto led = force<double>(model, examples.source, pointers(targets));
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
    // A hypothesis that lost its cell on the way would have another probability than the one it is led through.
    const auto again = force<double>(model, examples.source, pointers(best));
    for (std::size_t b = 0; b < 4; ++b) {
        CHECK(again[b].log_probability() == support::approx(several[b].front().log_probability));
    }
}

TEST_CASE("a deep RNNsearch: each direction of the encoder is a stack of its own, and all of it has the right gradient")
{
    auto model =
        translator_around(attentions::additive<double>{}, nn::new_stacked{2, nn::new_lstm{}, nn::shortcut::residual});
    const auto& e = model.encoder;
    const auto batch = make_source(pointers(sources));
    const auto both = e.encode(batch);
    const auto forwards = forward_encoder{e.embedding, e.forward, e.forward_start}.encode(batch);
    const auto backwards =
        forward_encoder{e.embedding, e.backward, e.backward_start, direction::backward}.encode(batch);
    for (std::size_t b = 0; b < 4; ++b) {
        for (std::size_t t = 0; t < batch.real[b]; ++t) {
            for (std::size_t j = 0; j < small.hidden; ++j) {
                CHECK(both.annotations(b, t, j) == forwards.annotations(b, t, j));
                CHECK(both.annotations(b, t, small.hidden + j) == backwards.annotations(b, t, j));
            }
        }
    }
    CHECK(support::same_bits(both.start, backwards.start));
    const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));
    const auto result = ad::grad_check(model, [&](auto&, const auto& lifted) { return lifted.loss(examples, 0.1); });
    CHECK_MESSAGE(result, result.text());
    CHECK(result.entries == parameter_count(model));
}

TEST_CASE("a packed model finds what the model finds, with its own products: LSTM, maxout and softmax(W z + c)")
{
    const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));
    const auto check = [&](auto model, const auto& how) {
        for_each_parameter(model, [](const std::string&, auto& x) {
            for (double& w : x) w *= 3;  // far from uniform, so that hypotheses branch
        });
        const packed<double, decltype(model)> fast(model);
        CHECK(fast.decoder().vocabulary_of_input() == small.target_vocabulary);
        const auto must = beam<double>(model, examples.source, how), is = beam<double>(fast, examples.source, how);
        for (std::size_t b = 0; b < 4; ++b) {
            REQUIRE(is[b].size() == must[b].size());
            for (std::size_t k = 0; k < is[b].size(); ++k) {
                CHECK(is[b][k].words == must[b][k].words);
                CHECK(is[b][k].log_probability == support::approx(must[b][k].log_probability));
            }
        }
    };
    // Six hypotheses per sentence: the context's matrices move to the values where the attention allows it.
    const beam_options how{.width = 6, .best = 4};
    const auto linear = parts{}.with_cells(nn::new_lstm{}).with_readout(output::new_linear{});
    check(translator_around(attentions::additive<double>{}), how);
    check(make_translator<double>(3, small, attentions::per_dimension<double>{}, linear), how);
    check(make_translator<double>(3, small, attentions::additive<double>{}, linear.with_cells(nn::new_gru{})), how);
}
