// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/embedding.hpp>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/self_attentive_encoder.hpp>
#include <heed/seq2seq/systems/gehring2017.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed/train/adam.hpp>
#include <support/scalar_translation.hpp>
#include <support/sentences.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

// Contextual embeddings, and encoders over features instead of word ids.

using namespace heed;
using support::contains;
using support::message_of;
using support::random;
using support::same_bits;

namespace of_words {

using namespace heed::seq2seq;
using support::pointers;
namespace scalar = support::scalar;

constexpr std::size_t V = 9, E = 3, H = 4, A = 5;

const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};
const auto batch = make_training_batch<double>(pointers(sources), pointers(targets));

scalar::numbers row_of(const array<double, 2>& x, std::size_t b)
{
    return {x.data() + b * x.shape()[1], x.data() + (b + 1) * x.shape()[1]};
}

}  // namespace of_words

TEST_CASE("contextual embeddings translate each sentence as with embeddings masked by its words")
{
    using namespace of_words;
    const auto model = [&] {
        auto made = make_translator<double>(
            7, sizes{V, V, E, H, A}, attentions::additive_factory{},
            parts{}.with_embeddings(embedding::contextual_source_factory{2}, embedding::contextual_target_factory{2}));
        for_each_parameter(made, [](const std::string&, auto& x) {
            for (std::size_t i = 0; i < x.size(); ++i)
                x.data()[i] = 3 * x.data()[i] + 0.1 * std::sin(static_cast<double>(i));
        });
        return made;
    }();
    const auto& source = model.encoder.embedding;
    const auto& target = model.decoder.embedding;
    for (std::size_t b = 0; b < 4; ++b) {
        CAPTURE(b);
        const auto one = make_training_batch<double>(pointers({sources[b]}), pointers({targets[b]}));
        scalar::numbers c(2, 0.0);  // (1/T) Σ_t tanh(W x_t + b), the end word included
        const std::size_t T = one.source.real[0];
        for (std::size_t t = 0; t < T; ++t) {
            const scalar::numbers x = row_of(source.words, one.source.words(t, 0));
            const scalar::numbers each =
                scalar::tanh_layer(x, scalar::matrix_of(source.W), scalar::vector_of(source.b));
            for (std::size_t k = 0; k < 2; ++k) c[k] += each[k] / static_cast<double>(T);
        }
        const auto masked = [&](const auto& embedding) {  // E ⊙ σ(M c + m), for every word of the vocabulary
            const scalar::numbers a = scalar::times(c, scalar::matrix_of(embedding.gate.M));
            array<double, 2> table = embedding.words;
            for (std::size_t v = 0; v < V; ++v) {
                for (std::size_t k = 0; k < E; ++k) table(v, k) /= 1 + std::exp(-a[k] - embedding.gate.m(k));
            }
            return table;
        };
        const auto& e = model.encoder;
        const auto& d = model.decoder;
        const translator plain{
            bidirectional_encoder{masked(source), e.forward, e.backward, e.forward_start, e.backward_start},
            decoder{d.attention, masked(target), d.cell, d.asks, d.start, d.readout}};
        CHECK(model.loss(one)() == doctest::Approx(plain.loss(one)()).epsilon(1e-12));
        // The same in a batch, where the padding contains words.
        auto all = batch;
        for (std::size_t t = T; t < all.source.words.steps; ++t) all.source.words(t, b) = 8;
        for (std::size_t i = 0; i < all.targets.weights.size(); ++i) {
            if (i % 4 != b) all.targets.weights[i] = 0;
        }
        CHECK(model.loss(all)() == doctest::Approx(plain.loss(one)()).epsilon(1e-12));
    }
}

// The code of docs/how_to/build_a_model.md; tests/quotes.cmake compares them.
TEST_CASE("features replace words")
{
    const std::size_t B = 2, T = 6, F = 5, V = 9;
    const auto frames = random<float>({B, T, F}, 1);
    const std::vector<seq2seq::id_sentence> texts{{4, 5}, {6}};
    const std::vector<const seq2seq::id_sentence*> targets{&texts[0], &texts[1]};

    // section: features
    using namespace heed::seq2seq;
    auto model =
        make_translator<float>(1, {.source_vocabulary = F, .target_vocabulary = V, .embedding = 16, .hidden = 16},
                               attentions::additive_factory{}, parts{}.with_embeddings(embedding::projected_factory{}));
    feature_batch speech{frames, lengths{6, 4}};  // frames [B,T,F]
    auto loss = model.loss(speech, make_training_batch<float>(speech, targets));
    const encoded_source at_work{model, speech};  // for searches
    auto found = greedy<float>(at_work, source_of(speech));
    // end
    CHECK(loss() > 0);
    CHECK(found.size() == B);
}

namespace {

constexpr std::size_t B = 3, T = 5, F = 4, E = 6, H = 6;
const lengths real{5, 2, 3};

seq2seq::feature_batch<array<double, 3>> some_features() { return {random({B, T, F}, 1), real}; }

/// check(encoder) for every kind of encoder over features.
void each_encoder(const auto& check)
{
    random_source draw{3, 0};
    const nn::initializers<double> init{draw};
    const seq2seq::embedding::projected_factory projected;
    check(seq2seq::bidirectional_encoder_factory{}(
        init, seq2seq::encoder_parts{{F, E, H}, nn::stacked_factory{2}, projected}));
    check(seq2seq::forward_encoder_factory{}(
        init, seq2seq::encoder_parts{{F, F, H}, nn::gru_factory{}, seq2seq::embedding::as_given_factory{}}));
    // With gelu: at the kink of relu, differences are not derivatives.
    const auto layer = [&] {
        auto attention = papers::vaswani2017::make_multi_head<double>(draw, {H, 2});
        return seq2seq::transformer_encoder_layer{std::move(attention), nn::post_norm_factory{}(init, {H}),
                                                  nn::make_feed_forward<double>(draw, H, 2 * H, ops::gelu),
                                                  nn::post_norm_factory{}(init, {H})};
    };
    check(seq2seq::self_attentive_encoder{projected(init, {F, H}), nn::sinusoidal_positions{},
                                          std::vector{layer(), layer()}, nn::identity{}});
    seq2seq::convolutional_sizes n{.source_vocabulary = F, .target_vocabulary = 5, .embedding = E, .hidden = H};
    n.encoder_layers = 2;
    n.longest = T;
    auto convolutions = seq2seq::make_convolutional<double>(3, n, papers::gehring2017::layer_factory{},
                                                            nn::learned_positions_factory{0.1}, projected)
                            .encoder;
    convolutions.gradient_scale = 1;  // so that its gradient is the derivative
    check(convolutions);
}

}  // namespace

TEST_CASE("projected features are encoded like words of a table with these rows")
{
    // Row b, position t is word b T + t of a table that contains its projection.
    const auto from = some_features();
    const auto W = random({F, E}, 2);
    const auto b = random({E}, 3);
    const array<double, 2> table = ops::linear(ops::reshaped(from.features, B * T, F), W, b);
    seq2seq::source_batch words{word_ids(T, B), real};
    for (std::size_t t = 0; t < T; ++t)
        for (std::size_t i = 0; i < B; ++i) words.words(t, i) = static_cast<std::uint32_t>(i * T + t);

    random_source draw{3, 0};
    const auto cell = nn::make_gru<double>(draw, E, H), back = nn::make_gru<double>(draw, E, H);
    const nn::trained_start start{random({H}, 5)};
    const seq2seq::bidirectional_encoder by_table{table, cell, back, start, start};
    const seq2seq::bidirectional_encoder by_features{seq2seq::embedding::projected{W, b}, cell, back, start, start};
    const auto must = by_table.encode(words), found = by_features.encode(from);
    CHECK(support::distance(found.annotations, must.annotations) < 1e-15);
    CHECK(support::distance(found.start, must.start) < 1e-15);
    CHECK(support::distance(found.whole, must.whole) < 1e-15);

    const nn::learned_positions places{random({T, E}, 6)};
    const auto convolution = nn::gated_convolution{random({3 * H, 2 * H}, 7, 0.2), random({2 * H}, 8)};
    const auto make = [&](const auto& embedding) {
        return seq2seq::convolutional_encoder{
            embedding,          places,         random({E, H}, 9), random({H}, 10), std::vector{convolution},
            random({H, E}, 11), random({E}, 12)};
    };
    CHECK(support::distance(make(seq2seq::embedding::projected{W, b}).encode(from).values,
                            make(table).encode(words).values) < 1e-14);
}

TEST_CASE(
    "the contents of the padding change no annotation and no gradient; a row is encoded alike alone and in a batch")
{
    each_encoder([](auto encoder) {
        const auto clean = some_features();
        auto dirty = clean;
        for (std::size_t i = 0; i < B; ++i)
            for (std::size_t t = real[i]; t < T; ++t)
                for (std::size_t f = 0; f < F; ++f) dirty.features(i, t, f) = std::numeric_limits<double>::quiet_NaN();
        const auto run = [&](const auto& from) {
            ad::tape<double> on;
            std::vector<ad::named_variable<double>> lifted;
            const auto taped = ad::lift(on, encoder, lifted);
            const auto annotations = ops::clear_padding(taped.encode(from).annotations, real);
            on.backward(ops::dot(annotations, support::uneven(shape_of_rank<3>(annotations.shape()))));
            std::vector<double> all(annotations.value().data, annotations.value().data + annotations.size());
            for (const auto& x : lifted) {
                const auto d = on.gradient(x.numbers);
                all.insert(all.end(), d.data, d.data + d.size());
            }
            return all;
        };
        CHECK(run(clean) == run(dirty));

        const std::vector<std::size_t> second{1};
        const seq2seq::feature_batch alone{ops::slice(ops::rows_of(clean.features, second), 1, 0, 2), lengths{2}};
        const auto together = encoder.encode(clean).annotations, one = encoder.encode(alone).annotations;
        CHECK(support::distance(ops::slice(ops::rows_of(together, second), 1, 0, 2), one) < 1e-13);
    });
}

TEST_CASE("the gradients of encoders over features, and of the features, are correct")
{
    each_encoder([](auto encoder) {
        const auto from = some_features();
        const auto loss = [&](auto&, const auto& of) {
            const auto annotations = ops::clear_padding(of.encode(from).annotations, real);
            return ops::dot(annotations, support::uneven(shape_of_rank<3>(annotations.shape())));
        };
        const auto found = ad::grad_check(encoder, loss);
        CHECK_MESSAGE(bool(found), found.text());
    });
    random_source draw{3, 0};
    const auto encoder = seq2seq::bidirectional_encoder_factory{}(
        nn::initializers<double>{draw},
        seq2seq::encoder_parts{{F, E, H}, nn::gru_factory{}, seq2seq::embedding::projected_factory{}});
    ad::tape<double> on;
    const auto from = some_features();
    const auto x = on.parameter(from.features);
    on.backward(
        ops::dot(encoder.encode(seq2seq::feature_batch{x, real}).whole, support::uneven(shape_of_rank<2>{B, 2 * H})));
    const auto d = on.gradient(x);
    CHECK(d.data[0] != 0);
    CHECK(d.data[(T + 2) * F] == 0);  // after the end of row 1
}

TEST_CASE("mismatched features are rejected")
{
    random_source draw{3, 0};
    const auto encoder = seq2seq::forward_encoder_factory{}(
        nn::initializers<double>{draw},
        seq2seq::encoder_parts{{F, E, H}, nn::gru_factory{}, seq2seq::embedding::projected_factory{}});
    CHECK(contains(message_of<shape_error>([&] {
                       (void)encoder.encode(seq2seq::feature_batch{random({B, T, F}, 1), lengths{5, 6, 1}});
                   }),
                   "forward_encoder::encode"));
    CHECK(contains(message_of<shape_error>([&] {
                       (void)encoder.encode(seq2seq::feature_batch{random({B, T, F + 1}, 1), real});
                   }),
                   "[4,6]"));
    CHECK(
        contains(message_of<shape_error>([&] {
                     (void)seq2seq::forward_encoder_factory{}(
                         nn::initializers<double>{draw},
                         seq2seq::encoder_parts{{F, E, H}, nn::gru_factory{}, seq2seq::embedding::as_given_factory{}});
                 }),
                 "embedding::as_given_factory: the embedding is [6] but must be [4]"));
}

namespace {

/// Words as sequences of frames: word w is `steps` noisy frames around its own direction.
struct strokes {
    seq2seq::feature_batch<array<float, 3>> from;
    std::vector<seq2seq::id_sentence> words;

    std::vector<const seq2seq::id_sentence*> targets() const
    {
        std::vector<const seq2seq::id_sentence*> all;
        for (const auto& each : words) all.push_back(&each);
        return all;
    }
};

constexpr std::size_t frames = 4, kinds = 4;
constexpr std::uint32_t first_word = 4;

strokes draw_strokes(std::size_t rows, std::uint64_t stream)
{
    strokes all;
    const std::size_t longest = 3;
    all.from.features = zeros<float>(rows, longest * 3, frames);
    std::vector<std::size_t> counts;
    for (std::size_t b = 0; b < rows; ++b) {
        const std::size_t n = 1 + below(longest, mix(stream), 10 * b);
        seq2seq::id_sentence words;
        std::size_t t = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t w = below(kinds, mix(stream + 1), 10 * b + i);
            words.push_back(first_word + static_cast<std::uint32_t>(w));
            for (std::size_t k = 0; k < 3; ++k, ++t)
                for (std::size_t f = 0; f < frames; ++f)
                    all.from.features(b, t, f) =
                        (f == w ? 1.0f : 0.0f) + (k == 0 ? 0.5f : 0.0f) +  // start of a word
                        0.1f * static_cast<float>(normal(mix(stream + 2), (b * 64 + t) * 8 + f));
        }
        counts.push_back(t);
        all.words.push_back(std::move(words));
    }
    all.from.real = lengths(std::move(counts));
    return all;
}

}  // namespace

TEST_CASE("end to end, frames are read as words of unknown lengths")
{
    using namespace seq2seq;
    auto model =
        make_translator<float>(7,
                               {.source_vocabulary = frames,
                                .target_vocabulary = first_word + kinds,
                                .embedding = 12,
                                .hidden = 16,
                                .alignment = 12},
                               attentions::additive_factory{}, parts{}.with_embeddings(embedding::projected_factory{}));
    train::adamw<float> optimizer({.rate = 0.01, .decays = train::matrices_only});
    ad::tape<float> tape;
    double first = 0, last = 0;
    for (std::uint64_t i = 0; i < 120; ++i) {
        const strokes all = draw_strokes(24, 100 * i);
        const auto targets = all.targets();
        const auto batch = make_training_batch<float>(all.from, targets);
        tape.clear();
        const auto lifted = ad::lift(tape, model);
        const auto loss = lifted.loss(all.from, batch);
        tape.backward(ops::scale(loss, 1.0 / static_cast<double>(batch.target_words)));
        optimizer.step(model, lifted, tape, 1.0);
        last = static_cast<double>(loss.value().data[0]) / static_cast<double>(batch.target_words);
        if (i == 0) first = last;
    }
    CHECK(first > 1.5);
    CHECK(last < 0.1);

    const strokes unseen = draw_strokes(16, 99999);
    const encoded_source at_work{model, unseen.from};
    const auto found = greedy<float>(at_work, source_of(unseen.from));
    std::size_t right = 0;
    for (std::size_t b = 0; b < 16; ++b) right += found[b].words == unseen.words[b] ? 1 : 0;
    CHECK(right >= 14);
}
