// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/scalar_translation.hpp>
#include <support/tensors.hpp>

// Encoders, the decoder's first state, fixed_context and maxout, each against loops over one sentence that are written
// from Bahdanau et al. 2015, appendix A.

using namespace heed;
using support::random;
namespace scalar = support::scalar;

namespace {

constexpr std::size_t V = 9, E = 3, H = 4, L = 2;

/// Four sentences side by side, the longest neither first nor last; the padding is full of words.
seq2seq::source_batch sentences()
{
    seq2seq::source_batch batch{word_ids(5, 4), lengths{2, 5, 1, 3}};
    batch.words.ids = {7, 1, 4, 2, 3, 8, 6, 5, 5, 0, 1, 7, 2, 6, 8, 4, 1, 3, 2, 6};
    return batch;
}

/// Every parameter differs from every other, the starts and biases included.
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

/// The gates of an nn::gru separately; `below` are further rows of its input matrix.
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

/// The encoder's results, plain and taped, against the loops.
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

/// A decoder whose parameters all differ, and its layers as the loops take them.
auto decoder_for(std::size_t context)
{
    return seq2seq::decoder{seq2seq::fixed_context{},
                            random({V, E}, 40),
                            unit(E, 41),
                            seq2seq::asks_with::previous_state{random({context, 3 * H}, 45)},
                            seq2seq::starts_with::tanh_layer{random({H, H}, 46), random({H}, 47)},
                            seq2seq::output::maxout{random({H, 2 * L}, 48), random({E, 2 * L}, 49),
                                                    random({context, 2 * L}, 50), random({2 * L}, 51),
                                                    random({L, V}, 52), random({V}, 53)}};
}
scalar::decoder_layers layers_of(const auto& d)
{
    return {scalar::matrix_of(d.embedding),   apart(d.cell, scalar::matrix_of(d.asks.C)),
            scalar::matrix_of(d.readout.U_o), scalar::matrix_of(d.readout.V_o),
            scalar::matrix_of(d.readout.C_o), scalar::vector_of(d.readout.b_o),
            scalar::matrix_of(d.readout.W_o), scalar::vector_of(d.readout.b)};
}

}  // namespace

TEST_CASE("bidirectional_encoder: [→h_j; ←h_j] at each word, ←h_1, and [→h_T; ←h_1]")
{
    check_encoder(bidirectional());
}

TEST_CASE("forward_encoder: →h_j at each word, and h_T") { check_encoder(forward_only()); }

TEST_CASE("s_0 is made of the state that has read the sentence backwards up to its first word")
{
    const auto encoder = bidirectional();
    const auto decoder = decoder_for(2 * H);
    const auto batch = sentences();
    const auto open = decoder.open(encoder.encode(batch), batch.real);
    for (std::size_t b = 0; b < 4; ++b) {
        const auto backwards =
            scalar::read_backwards(apart(encoder.backward), scalar::vector_of(encoder.backward_start.value),
                                   words_of(batch, encoder.embedding, b));
        check_row("s_0", open.state.cell.data() + b * H,
                  scalar::tanh_layer(backwards.front(), scalar::matrix_of(decoder.start.W_s),
                                     scalar::vector_of(decoder.start.b_s)));
    }
}

TEST_CASE("fixed_context: the whole sentence at every step, and the decoder's probabilities with it")
{
    const auto check = [](const auto& encoder) {
        const auto batch = sentences();
        const auto source = encoder.encode(batch);
        const std::size_t D = shape_of(source.whole)[1];
        const seq2seq::fixed_context none;
        const auto memory = none.on(source, batch.real);
        auto state = none.start(memory);
        for (std::size_t i = 0; i < 2; ++i) {
            const auto seen = none.read(memory, random({4, H}, 90 + i), state);
            for (std::size_t b = 0; b < 4; ++b) {
                check_row("context", seen.context.data() + b * D, expected(encoder, batch, b).whole);
            }
            state = seen.state;
        }

        const auto decoder = decoder_for(D);
        seq2seq::training_batch<double> pairs{batch, word_ids(3, 4), {word_ids(3, 4), std::vector<double>(12)}, 0};
        pairs.previous.ids = {2, 2, 2, 2, 8, 0, 5, 1, 6, 7, 4, 3};
        pairs.targets.words.ids = {8, 0, 5, 1, 6, 7, 4, 3, 1, 2, 3, 4};
        for (std::size_t b = 0; b < 4; ++b) {
            const auto must = expected(encoder, batch, b);
            std::vector<std::size_t> previous, words;
            for (std::size_t i = 0; i < 3; ++i) {
                previous.push_back(pairs.previous(i, b));
                words.push_back(pairs.targets.words(i, b));
            }
            const auto log_p =
                scalar::log_probabilities(layers_of(decoder),
                                          scalar::tanh_layer(must.start, scalar::matrix_of(decoder.start.W_s),
                                                             scalar::vector_of(decoder.start.b_s)),
                                          must.whole, previous, words);
            for (std::size_t i = 0; i < 3; ++i) {
                std::fill(pairs.targets.weights.begin(), pairs.targets.weights.end(), 0.0);
                pairs.targets.weights[i * 4 + b] = 1;
                CHECK(decoder.loss(source, pairs)() == doctest::Approx(-log_p[i]).epsilon(1e-12));
            }
        }
    };
    check(bidirectional());
    check(forward_only());
}

TEST_CASE("maxout: the greater of each pair of neighbours")
{
    const auto check = [](const auto& x) {
        ad::tape<double> on;
        const auto plain = ops::maxout(x), taped = copy_of(ops::maxout(on.parameter(x)).value());
        const std::size_t n = shape_of(x).back(), rows = x.size() / n;
        REQUIRE(plain.size() == rows * n / 2);
        for (std::size_t r = 0; r < rows; ++r) {
            const scalar::numbers must = scalar::maxout({x.data() + r * n, x.data() + (r + 1) * n});
            for (std::size_t i = 0; i < n / 2; ++i) {
                CHECK(plain.data()[r * n / 2 + i] == must[i]);
                CHECK(taped.data()[r * n / 2 + i] == must[i]);
            }
        }
    };
    check(random({3, 6}, 1));
    check(random({2, 3, 8}, 2));
    check(random({1, 2}, 3));
}
