// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/encoder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/nn/stacked.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/scalar_translation.hpp>
#include <support/sentences.hpp>
#include <support/tensors.hpp>

// Encoders against scalar loops over one sentence, written from Bahdanau et al. 2015, appendix A.

using namespace heed;
using support::random;
namespace scalar = support::scalar;

namespace {

constexpr std::size_t V = 9, E = 3, H = 4;

/// Four sentences in a batch, the longest neither first nor last; the padding contains words.
seq2seq::source_batch sentences()
{
    seq2seq::source_batch batch{word_ids(5, 4), lengths{2, 5, 1, 3}};
    batch.words.ids = {7, 1, 4, 2, 3, 8, 6, 5, 5, 0, 1, 7, 2, 6, 8, 4, 1, 3, 2, 6};
    return batch;
}

/// All parameters differ, including initial states and biases.
auto unit(std::size_t input, std::uint64_t stream)
{
    return nn::gru{random({input, 3 * H}, stream), random({3 * H}, stream + 1), random({H, 2 * H}, stream + 2),
                   random({H, H}, stream + 3)};
}
auto bidirectional()
{
    return seq2seq::bidirectional_encoder{random({V, E}, 1), unit(E, 10), unit(E, 20),
                                          nn::trained_start{random({H}, 30)}, nn::trained_start{random({H}, 31)}};
}
auto forward_only()
{
    return seq2seq::forward_encoder{random({V, E}, 1), unit(E, 10), nn::trained_start{random({H}, 30)}};
}

/// The gates of an nn::gru separately; `below` contains further rows of its input matrix.
scalar::gated_unit apart(const auto& cell, const scalar::matrix& below = {})
{
    scalar::matrix W = scalar::matrix_of(cell.W);
    W.insert(W.end(), below.begin(), below.end());
    const scalar::matrix U = scalar::matrix_of(cell.U), b{scalar::vector_of(cell.b)};
    return {scalar::columns(W, 0, H),         scalar::columns(W, H, H),         scalar::columns(W, 2 * H, H),
            scalar::columns(U, 0, H),         scalar::columns(U, H, H),         scalar::matrix_of(cell.U_h),
            scalar::columns(b, 0, H).front(), scalar::columns(b, H, H).front(), scalar::columns(b, 2 * H, H).front()};
}

/// The embeddings of the real words of row b.
scalar::matrix words_of(const seq2seq::source_batch& batch, const array<double, 2>& table, std::size_t b)
{
    const scalar::matrix rows = scalar::matrix_of(table);
    scalar::matrix words;
    for (std::size_t t = 0; t < batch.real[b]; ++t) words.push_back(rows[batch.words(t, b)]);
    return words;
}

/// The expected encoding of one sentence.
struct expected_sentence {
    scalar::matrix annotations;
    scalar::numbers start, whole;
};

expected_sentence expected(const auto& encoder, const seq2seq::source_batch& batch, std::size_t b)
{
    const scalar::matrix words = words_of(batch, encoder.embedding, b);
    expected_sentence must;
    if constexpr (requires { encoder.backward; }) {
        const auto forwards =
            scalar::read_forwards(apart(encoder.forward), scalar::vector_of(encoder.forward_start.value), words);
        const auto backwards =
            scalar::read_backwards(apart(encoder.backward), scalar::vector_of(encoder.backward_start.value), words);
        for (std::size_t t = 0; t < words.size(); ++t) {
            must.annotations.push_back(scalar::joined(forwards[t], backwards[t]));
        }
        must.start = backwards.front();
        must.whole = scalar::joined(forwards.back(), backwards.front());
    } else {
        must.annotations = scalar::read_forwards(apart(encoder.cell), scalar::vector_of(encoder.start.value), words);
        must.start = must.whole = must.annotations.back();
    }
    return must;
}

void check_row(const char* what, const double* row, const scalar::numbers& must)
{
    for (std::size_t i = 0; i < must.size(); ++i) {
        CHECK_MESSAGE(row[i] == doctest::Approx(must[i]).epsilon(1e-13), what << ", number " << i);
    }
}

/// The results of the encoder, plain and taped, against the loops.
void check_encoder(const auto& encoder)
{
    const auto batch = sentences();
    const auto check = [&](const auto& is) {
        for (std::size_t b = 0; b < 4; ++b) {
            CAPTURE(b);
            const expected_sentence must = expected(encoder, batch, b);
            const std::size_t width = must.whole.size();
            REQUIRE(shape_of(is.annotations) == shape_of_rank<3>{4, 5, width});
            REQUIRE(shape_of(is.start) == shape_of_rank<2>{4, H});
            REQUIRE(shape_of(is.whole) == shape_of_rank<2>{4, width});
            for (std::size_t t = 0; t < batch.real[b]; ++t) {
                check_row("annotation", view_of(is.annotations).data + (b * 5 + t) * width, must.annotations[t]);
            }
            check_row("start", view_of(is.start).data + b * H, must.start);
            check_row("whole", view_of(is.whole).data + b * width, must.whole);
        }
    };
    check(encoder.encode(batch));
    ad::tape<double> on;
    check(ad::lift(on, encoder).encode(batch));
}

/// The outputs of an LSTM layer over one sentence, by a scalar loop; words in reading order.
std::vector<std::vector<double>> read_by_lstm(const auto& unit, const array<double, 1>& start,
                                              const std::vector<std::vector<double>>& words)
{
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

TEST_CASE("bidirectional_encoder returns [→h_j; ←h_j] at each word, ←h_1, and [→h_T; ←h_1]")
{
    check_encoder(bidirectional());
}

TEST_CASE("forward_encoder returns →h_j at each word, and h_T") { check_encoder(forward_only()); }

TEST_CASE("bidirectional_encoder with LSTM equals scalar loops for any padding")
{
    const auto lstm = [](std::uint64_t stream) {
        return nn::lstm{random({E, 4 * H}, stream), random({4 * H}, stream + 1), random({H, 4 * H}, stream + 2)};
    };
    const seq2seq::bidirectional_encoder encoder{
        random({V, E}, 1), lstm(10), lstm(20), nn::trained_start{random({H}, 30)}, nn::trained_start{random({H}, 31)}};
    const auto batch = sentences();
    const auto is = encoder.encode(batch);
    for (std::size_t b = 0; b < 4; ++b) {
        const std::size_t n = batch.real[b];
        std::vector<std::vector<double>> words(n, std::vector<double>(E));
        for (std::size_t t = 0; t < n; ++t) {
            for (std::size_t k = 0; k < E; ++k) words[t][k] = encoder.embedding(batch.words(t, b), k);
        }
        const auto forwards = read_by_lstm(encoder.forward, encoder.forward_start.value, words);
        std::reverse(words.begin(), words.end());
        auto backwards = read_by_lstm(encoder.backward, encoder.backward_start.value, words);
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

TEST_CASE("a deep RNNsearch has one stack per encoder direction, and correct gradients")
{
    using namespace heed::seq2seq;
    const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}},
        targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};
    constexpr sizes small{7, 8, 4, 3, 5};
    auto model = make_translator<double>(3, small, attentions::additive_factory{}, nullptr,
                                         nn::stacked_factory{2, nn::lstm_factory{}, nn::shortcut::residual});
    const auto& e = model.encoder;
    const auto batch = make_source(support::pointers(sources));
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
    const auto examples = make_training_batch<double>(support::pointers(sources), support::pointers(targets));
    const auto result = ad::grad_check(model, [&](auto&, const auto& lifted) { return lifted.loss(examples, 0.1); });
    CHECK_MESSAGE(result, result.text());
    CHECK(result.entries == parameter_count(model));
}
