// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/papers/transformer.hpp>
#include <heed/papers/translation.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/objective.hpp>
#include <heed/seq2seq/systems/gehring2017.hpp>
#include <support/approx.hpp>
#include <support/scalar_attention.hpp>
#include <support/sentences.hpp>
#include <support/tensors.hpp>

// Convolutional translators against scalar loops; gradients of the whole model, and searches.

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;
using support::random;
using support::scalar::inner;
using support::scalar::matrix;
using support::scalar::matrix_of;
using support::scalar::numbers;
using support::scalar::times;
using support::scalar::vector_of;

namespace {

// Different lengths, a repeated word, and a sentence without words: attention can read only its end.
const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};

convolutional_sizes small(std::size_t width)
{
    return {.source_vocabulary = 7,
            .target_vocabulary = 8,
            .embedding = 4,
            .hidden = 3,
            .encoder_layers = 2,
            .decoder_layers = 2,
            .width = width,
            .longest = 30};
}

/// Temporal attention: each query depends on the one before.
struct make_temporal {
    auto operator()(random_source& source, const convolutional_sizes& n) const
    {
        return papers::sankaran2016::make_temporal<double>(source, {n.hidden, n.embedding, 3});
    }
};

struct make_heads {
    auto operator()(random_source& source, const convolutional_sizes& n) const
    {
        const auto draw = [&](std::size_t rows) { return nn::glorot<double>(source, rows, n.embedding); };
        auto W_Q = draw(n.hidden), W_K = draw(n.embedding), W_V = draw(n.embedding), W_O = draw(n.embedding);
        return papers::vaswani2017::multi_head(2, std::move(W_Q), std::move(W_K), std::move(W_V), std::move(W_O));
    }
};

/// A model with nonzero biases.
template <class MakeAttention = papers::gehring2017::layer_factory>
auto model_of(std::size_t width = 3, const MakeAttention& make = {})
{
    auto model = papers::gehring2017::translator<double>(3, small(width), make);
    std::uint64_t stream = 50;
    for_each_parameter(model, [&](const std::string&, auto& x) {
        if constexpr (rank_of<decltype(x)> == 1) x = random(shape_of(x), ++stream, 0.3);
    });
    model.encoder.gradient_scale = 1;
    return model;
}

training_batch<double> batch() { return make_training_batch<double>(pointers(sources), pointers(targets)); }

// ---- the whole model for one sentence, from the equations --------------------------------------------------------

numbers sum(numbers a, const numbers& b, double of_a = 1, double of_b = 1)
{
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = of_a * a[i] + of_b * b[i];
    return a;
}

matrix embedded(const auto& part, const id_sentence& words)
{
    matrix e;
    const matrix table = matrix_of(part.embedding), places = matrix_of(part.positions.table);
    for (std::size_t t = 0; t < words.size(); ++t) e.push_back(sum(table[words[t]], places[t]));
    return e;
}

matrix mapped(const matrix& x, const array<double, 2>& W, const array<double, 1>& b)
{
    matrix y;
    for (const numbers& each : x) y.push_back(sum(times(each, matrix_of(W)), vector_of(b)));
    return y;
}

/// v¹ ⊙ σ(v²) with v_t = b + Σ_i x_{t-before+i} W_i.
matrix gated(const auto& f, const matrix& x, std::size_t before)
{
    const std::size_t H = x[0].size(), k = f.W.shape()[0] / H;
    const matrix W = matrix_of(f.W);
    matrix y;
    for (std::size_t t = 0; t < x.size(); ++t) {
        numbers v = vector_of(f.b), unit(H);
        for (std::size_t i = 0; i < k; ++i) {
            if (t + i < before || t + i - before >= x.size()) continue;
            const auto first = W.begin() + static_cast<std::ptrdiff_t>(i * H);
            v = sum(v, times(x[t + i - before], matrix(first, first + static_cast<std::ptrdiff_t>(H))));
        }
        for (std::size_t j = 0; j < H; ++j) unit[j] = v[j] / (1 + std::exp(-v[H + j]));
        y.push_back(unit);
    }
    return y;
}

struct judgement {
    numbers log_p;   // of each word and of the end
    matrix weights;  // the mean over the layers
};

judgement judge(const auto& model, id_sentence source, const id_sentence& target)
{
    const double half = std::sqrt(0.5);
    const auto& encoder = model.encoder;
    source.push_back(3);
    const matrix e = embedded(encoder, source);
    matrix x = mapped(e, encoder.W_in, encoder.b_in);
    for (const auto& block : encoder.blocks) {
        const matrix h = gated(block, x, (block.width() - 1) / 2);
        for (std::size_t t = 0; t < x.size(); ++t) x[t] = sum(x[t], h[t], half, half);
    }
    const matrix z = mapped(x, encoder.W_out, encoder.b_out);

    const auto& decoder = model.decoder;
    id_sentence previous{2}, expected = target;
    previous.insert(previous.end(), target.begin(), target.end());
    expected.push_back(3);
    const matrix g = embedded(decoder, previous);
    x = mapped(g, decoder.W_in, decoder.b_in);
    judgement result{{}, matrix(x.size(), numbers(z.size(), 0.0))};
    const double T = static_cast<double>(z.size()), layers = static_cast<double>(decoder.layers.size());
    for (const auto& layer : decoder.layers) {
        const matrix h = gated(layer.convolution, x, layer.convolution.width() - 1);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const auto& score = layer.attention.score;
            const numbers d = sum(sum(times(h[i], matrix_of(score.W)), vector_of(score.b)), g[i], 1, half);
            numbers a, c(z[0].size(), 0.0);
            double all = 0;
            for (const numbers& key : z) a.push_back(std::exp(inner(d, key)));
            for (const double each : a) all += each;
            for (std::size_t t = 0; t < z.size(); ++t) {
                c = sum(c, sum(z[t], e[t], half, half), 1, a[t] / all);
                result.weights[i][t] += a[t] / all / layers;
            }
            for (double& each : c) each *= T * std::sqrt(1 / T);
            x[i] = sum(sum(x[i], h[i], half, half * half), times(c, matrix_of(layer.W_c)));
        }
    }
    const matrix scores = mapped(mapped(x, decoder.W_out, decoder.b_out), decoder.W_o, decoder.b);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        double all = 0;
        for (const double each : scores[i]) all += std::exp(each);
        result.log_p.push_back(scores[i][expected[i]] - std::log(all));
    }
    return result;
}

template <class Make>
void check_gradient(const Make& make)
{
    auto model = model_of(3, make);
    auto examples = batch();
    for (std::size_t i = 0; i < examples.targets.weights.size(); ++i) {
        examples.targets.weights[i] *= 0.5 + 0.1 * static_cast<double>(i % 7);  // uneven: gradients do not cancel
    }
    const auto result = ad::grad_check(model, [&](auto&, const auto& lifted) {
        random_source drops{9, 0};
        return lifted.loss(examples, 0.1, nn::dropout{0.2, &drops});
    });
    CHECK_MESSAGE(result, result.text());
    CHECK(result.entries == parameter_count(model));
}

/// Step by step equals all steps at once, and hypotheses carry their whole state.
template <class Model>
void check_searches(const Model& model)
{
    const auto examples = batch();
    double sum = 0;
    const auto led = force<double>(model, examples.source, pointers(targets));
    for (std::size_t b = 0; b < sources.size(); ++b) {
        sum -= led[b].log_probability();
        for (const auto& weights : led[b].weights) {
            CHECK(weights.size() == sources[b].size() + 1);
            CHECK(std::accumulate(weights.begin(), weights.end(), 0.0) == support::approx(1));
        }
    }
    CHECK(sum == doctest::Approx(model.loss(examples).data()[0]).epsilon(1e-12));

    const auto simple = greedy<double>(model, examples.source);
    const auto one = beam<double>(model, examples.source, {.width = 1});
    const auto several = beam<double>(model, examples.source, {.width = 5});
    std::vector<id_sentence> best;
    for (std::size_t b = 0; b < sources.size(); ++b) {
        CHECK(one[b].front().words == simple[b].words);
        CHECK(greedy<double>(model, make_source(pointers({sources[b]})))[0].words == simple[b].words);
        best.push_back(several[b].front().words);
    }
    // If a hypothesis lost part of its state, its probability would differ from that of forced decoding.
    const auto again = force<double>(model, examples.source, pointers(best));
    for (std::size_t b = 0; b < sources.size(); ++b) {
        CHECK(again[b].log_probability() == support::approx(several[b].front().log_probability));
    }
    const packed<double, Model> fast(model);
    CHECK(beam<double>(fast, examples.source, {.width = 5})[2].front().words == best[2]);
}

/// The gradient of each number, followed by the loss.
template <class Model>
std::vector<double> gradients(const Model& model, const training_batch<double>& examples)
{
    ad::tape<double> on;
    const auto lifted = ad::lift(on, model);
    const auto loss = lifted.loss(examples);
    on.backward(loss);
    std::vector<double> all;
    for_each_parameter(lifted, [&](const std::string&, const auto& x) {
        const auto g = on.gradient(x);
        all.insert(all.end(), g.data, g.data + g.size());
    });
    all.push_back(loss.data()[0]);
    return all;
}

}  // namespace

TEST_CASE("the model equals scalar loops, word by word, for any padding")
{
    for (const std::size_t width : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
        const auto model = model_of(width);
        const auto led = force<double>(model, make_source(pointers(sources)), pointers(targets));
        for (std::size_t b = 0; b < sources.size(); ++b) {
            const judgement must = judge(model, sources[b], targets[b]);
            REQUIRE(led[b].log_probabilities.size() == must.log_p.size());
            for (std::size_t i = 0; i < must.log_p.size(); ++i) {
                CHECK(led[b].log_probabilities[i] == doctest::Approx(must.log_p[i]).epsilon(1e-12));
                for (std::size_t t = 0; t <= sources[b].size(); ++t) {
                    CHECK(led[b].weights[i][t] == doctest::Approx(must.weights[i][t]).epsilon(1e-12));
                }
            }
        }
    }
}

TEST_CASE("every parameter's gradient equals finite differences")
{
    check_gradient(papers::gehring2017::layer_factory{});
    check_gradient(make_temporal{});
}

TEST_CASE("losses may read the weights, which are those of a search, and gradients equal finite differences")
{
    auto model = model_of(3, make_temporal{});
    const auto examples = batch();
    const auto seen = model.follow(examples);
    CHECK(seen.loss().data()[0] == doctest::Approx(model.loss(examples).data()[0]).epsilon(1e-13));
    const auto led = force<double>(model, examples.source, pointers(targets));
    for (std::size_t b = 0; b < sources.size(); ++b) {
        for (std::size_t s = 0; s <= targets[b].size(); ++s) {
            for (std::size_t t = 0; t <= sources[b].size(); ++t)
                CHECK(seen.weights[s](b, t) == doctest::Approx(led[b].weights[s][t]).epsilon(1e-12));
        }
    }
    const auto result = ad::grad_check(model, [&](auto&, const auto& lifted) {
        return loss_with(lifted, examples, objective::doubly_stochastic{0.5}, 0.1);
    });
    CHECK_MESSAGE(result, result.text());
}

TEST_CASE("step by step equals all steps at once; a beam of one is greedy; hypotheses carry their state")
{
    check_searches(model_of());
    check_searches(model_of(2, make_temporal{}));
    check_searches(model_of(3, make_heads{}));
}

TEST_CASE("training computes all words of a sentence at once: a longer sentence records no more operations")
{
    const auto model = model_of();
    const auto entries = [&](std::size_t words) {
        const id_sentence sentence(words, 4);
        ad::tape<double> on;
        (void)ad::lift(on, model).loss(make_training_batch<double>(pointers({sentence}), pointers({sentence})));
        return on.entries();
    };
    CHECK(entries(9) == entries(2));
}

TEST_CASE("a word does not depend on later words")
{
    const auto model = model_of();
    auto examples = make_training_batch<double>(pointers({{4, 5}}), pointers({{4, 5, 6, 7}}));
    const auto loss = [&] { return model.loss(examples).data()[0]; };
    const double all = loss();
    for (std::size_t s = 3; s < 5; ++s)
        examples.targets.weights[s] = 1e-300;  // counted as words, but with negligible weight
    const double first = loss();
    examples.previous(3, 0) = 5;
    examples.previous(4, 0) = 4;
    CHECK(loss() == first);
    for (std::size_t s = 3; s < 5; ++s) examples.targets.weights[s] = 1;
    CHECK(loss() != all);
}

TEST_CASE("the contents of the padding, NaN included, change no loss and no gradient")
{
    auto model = model_of();
    auto examples = batch();
    const auto before = gradients(model, examples);
    for (double* table : {model.encoder.embedding.data(), model.decoder.embedding.data()}) {
        for (std::size_t i = 0; i < 4; ++i)
            table[i] = std::numeric_limits<double>::quiet_NaN();  // word 0 is the padding
    }
    CHECK(gradients(model, examples) == before);
    for (std::size_t b = 0; b < sources.size(); ++b) {
        for (std::size_t t = sources[b].size() + 1; t < examples.source.words.steps; ++t)
            examples.source.words(t, b) = 6;
        for (std::size_t s = targets[b].size() + 1; s < examples.previous.steps; ++s) examples.previous(s, b) = 7;
    }
    CHECK(gradients(model, examples) == before);
}

TEST_CASE("the gradient of the encoder is scaled where attention reads it, the decoder's is not")
{
    auto model = model_of();
    const auto of = [&](const auto& lifted, ad::tape<double>& on) {
        on.backward(lifted.loss(batch()));
        return std::vector<array<double, 2>>{copy_of(on.gradient(lifted.encoder.blocks[0].W)),
                                             copy_of(on.gradient(lifted.encoder.W_out)),
                                             copy_of(on.gradient(lifted.decoder.W_in))};
    };
    ad::tape<double> on, scaled;
    const auto full = of(ad::lift(on, model), on);
    model.encoder.gradient_scale = 0.25;
    const auto some = of(ad::lift(scaled, model), scaled);
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        CHECK(support::distance(some[i], array<double, 2>(0.25 * full[i])) < 1e-14);
    }
    CHECK(support::same_bits(some[2], full[2]));
    CHECK(papers::gehring2017::translator<float>(1, small(3)).encoder.gradient_scale == 0.25);  // 1 / (2 · 2 layers)
}

TEST_CASE("initial weights keep the variance; the decoder accepts any encoder; mismatched sizes are rejected")
{
    const auto model = papers::gehring2017::translator<double>(
        1, {.source_vocabulary = 50, .target_vocabulary = 50, .hidden = 64, .longest = 50, .dropout = 0.2});
    const auto deviation = [](const auto& W) {
        double squares = 0;
        for (const double w : W) squares += w * w;
        return std::sqrt(squares / static_cast<double>(W.size()));
    };
    CHECK(deviation(model.encoder.blocks[0].W) == doctest::Approx(std::sqrt(4 * 0.8 / (3 * 64))).epsilon(0.03));
    CHECK(deviation(model.encoder.embedding) == doctest::Approx(0.1).epsilon(0.03));
    CHECK(deviation(model.encoder.W_out) == doctest::Approx(std::sqrt(1.0 / 64)).epsilon(0.03));
    CHECK(deviation(model.decoder.W_o) == doctest::Approx(std::sqrt(0.8 / 256)).epsilon(0.03));
    CHECK(model.encoder.blocks.size() == 4);
    CHECK(model.decoder.layers.size() == 3);

    struct annotated {
        array<double, 3> annotations;
    };
    const auto h = random({2, 3, 256}, 1);
    const auto given = model.decoder.open(annotated{h}, lengths{3, 2}).memory;
    const auto both = model.decoder.open(convolved{h, h}, lengths{3, 2}).memory;
    CHECK(support::same_bits(given.of[1].values, both.of[1].values));

    auto none = model.decoder;
    none.layers.clear();
    CHECK(support::message_of<error>([&] {
              (void)none.open(annotated{h}, lengths{3, 2});
          }) == "convolutional_decoder: layers: the list is empty; give at least one");
    CHECK(support::contains(
        support::message_of<error>([&] { (void)model.encoder.encode(make_source(pointers({id_sentence(50, 4)}))); }),
        "a sentence of 51 words, but the table has 50 positions"));
}

TEST_CASE("scale_gradient returns its input and scales the gradient")
{
    const auto a = support::random({2, 3}, 1), b = support::random({2, 3}, 2);
    CHECK(support::same_bits(ops::scale_gradient(a, 0.5), a));
    ad::tape<double> on;
    const auto x = on.parameter(a);
    const auto y = ops::scale_gradient(x, 0.5);
    CHECK(support::same_bits(y, a));
    on.backward(ops::dot(y, b));
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(on.gradient(x).data[i] == 0.5 * b.data()[i]);
}
