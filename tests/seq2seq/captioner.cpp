// SPDX-License-Identifier: BSD-3-Clause
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/sentences.hpp>

#include <heed/ad/ad.hpp>
#include <heed/papers/captioning.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/own_model.hpp>
#include <heed/seq2seq/systems/xu2015.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

// The system of Xu et al. 2015 against loops over its equations, one picture at a time; gradients by differences;
// decoding step by step equals all steps at once.

using namespace heed;
using namespace heed::seq2seq;
namespace xu = heed::papers::xu2015;
using support::random;

namespace {

using numbers = std::vector<double>;

const std::vector<id_sentence> said{{4, 5, 4}, {6}};

xu::sizes small()
{
    xu::sizes n;
    n.picture = {5, 6};
    n.vocabulary = 7;
    n.maps = {2, 3, 4};
    n.embedding = 3;
    n.hidden = 2;
    n.alignment = 3;
    return n;
}

auto model_with(const auto& normalize)
{
    auto model = xu::reader<double>(2, small(), normalize);
    model.decoder.b_h = random({2}, 40);  // with zeros, a missing bias would not be detected
    model.decoder.b_c = random({2}, 41);
    model.decoder.b = random({7}, 42);
    for (auto& layer : model.encoder.layers) layer.b = random({layer.b.size()}, 43, 0.1);
    return model;
}

const auto pictures = random({2, 30, 1}, 1);

auto words() { return make_training_batch<double>(support::pointers(said), support::pointers(said)); }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// y_n = Σ_i x_i W_in
numbers times(const numbers& x, const array<double, 2>& W)
{
    numbers y(W.shape()[1], 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t n = 0; n < y.size(); ++n) y[n] += x[i] * W(i, n);
    }
    return y;
}

numbers sum_of(const numbers& x, const auto& y)
{
    numbers z = x;
    for (std::size_t i = 0; i < z.size(); ++i) z[i] += y.data()[i];
    return z;
}

numbers tanh_of(numbers x)
{
    for (double& each : x) each = std::tanh(each);
    return x;
}

numbers row_of(const array<double, 2>& table, std::size_t row)
{
    return {table.data() + row * table.shape()[1], table.data() + (row + 1) * table.shape()[1]};
}

/// −log p of each word of one sentence, end word included, and the weights of each step.
struct told {
    numbers costs;
    std::vector<numbers> weights;
};

told loops(const auto& m, const array<double, 3>& annotations, std::size_t b, const id_sentence& sentence)
{
    const std::size_t T = annotations.shape()[1], D = annotations.shape()[2], H = 2;
    std::vector<numbers> a;
    numbers mean(D, 0.0);
    for (std::size_t t = 0; t < T; ++t) {
        a.emplace_back(annotations.data() + (b * T + t) * D, annotations.data() + (b * T + t + 1) * D);
        for (std::size_t d = 0; d < D; ++d) mean[d] += a[t][d] / static_cast<double>(T);
    }
    numbers h = tanh_of(sum_of(times(mean, m.W_h), m.b_h)), c = tanh_of(sum_of(times(mean, m.W_c), m.b_c));
    told result;
    for (std::size_t s = 0; s <= sentence.size(); ++s) {
        // eq. 4 and 5, and eq. 13
        numbers weights, context(D, 0.0);
        double all = 0;
        for (std::size_t t = 0; t < T; ++t) {
            const numbers hidden = tanh_of(sum_of(times(h, m.attention.score.W), times(a[t], m.attention.score.U)));
            double e = 0;
            for (std::size_t i = 0; i < hidden.size(); ++i) e += hidden[i] * m.attention.score.v(i);
            weights.push_back(std::exp(e));
            all += weights.back();
        }
        for (std::size_t t = 0; t < T; ++t) {
            weights[t] /= all;
            for (std::size_t d = 0; d < D; ++d) context[d] += weights[t] * a[t][d];
        }
        // eq. 1 to 3; gates in the order i|f|o|g
        const numbers y = row_of(m.embedding, s == 0 ? 2 : sentence[s - 1]);
        const numbers gates =
            sum_of(sum_of(sum_of(times(y, m.cell.W), m.cell.b), times(context, m.C)), times(h, m.cell.U));
        for (std::size_t i = 0; i < H; ++i) {
            c[i] = sigmoid(gates[H + i]) * c[i] + sigmoid(gates[i]) * std::tanh(gates[3 * H + i]);
            h[i] = sigmoid(gates[2 * H + i]) * std::tanh(c[i]);
        }
        // eq. 7
        const numbers z = sum_of(times(sum_of(sum_of(y, times(h, m.L_h)), times(context, m.L_z)), m.L_o), m.b);
        double sum = 0;
        for (const double each : z) sum += std::exp(each);
        result.costs.push_back(std::log(sum) - z[s < sentence.size() ? sentence[s] : 3]);
        result.weights.push_back(weights);
    }
    return result;
}

}  // namespace

TEST_CASE("an annotation is a region's feature maps with the embeddings of its row and column")
{
    const auto model = model_with(normalize::softmax{});
    const auto& encoder = model.encoder;
    const auto is = encoder.encode(pictures);
    REQUIRE(encoder.regions() == grid{2, 2});  // 5 x 6, stride 2 applied twice
    const auto rectified = [](array<double, 3> x) {
        for (double& each : x) each = std::max(0.0, each);
        return x;
    };
    auto maps = rectified(encoder.layers[0](pictures, grid{5, 6}));
    maps = rectified(encoder.layers[1](maps, grid{3, 3}));
    maps = rectified(encoder.layers[2](maps, grid{2, 2}));
    REQUIRE(is.shape() == maps.shape());
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t t = 0; t < 4; ++t) {
            for (std::size_t d = 0; d < 4; ++d) {
                CHECK(is(b, t, d) ==
                      support::approx(maps(b, t, d) + encoder.rows(t / 2, d) + encoder.columns(t % 2, d)));
            }
        }
    }
}

TEST_CASE("costs and weights of given words equal the paper's equations")
{
    const auto model = model_with(normalize::softmax{});
    const auto annotations = random({2, 4, 4}, 5);
    const auto is = model.decoder.follow(annotations, words());
    REQUIRE(is.costs.shape() == shape_of_rank<2>{4, 2});
    REQUIRE(is.weights.size() == 4);
    for (std::size_t b = 0; b < 2; ++b) {
        const told must = loops(model.decoder, annotations, b, said[b]);
        for (std::size_t s = 0; s < 4; ++s) {
            if (s >= must.costs.size()) {
                CHECK(is.costs(s, b) == 0);
                continue;
            }
            CHECK(is.costs(s, b) == doctest::Approx(must.costs[s]).epsilon(1e-12));
            for (std::size_t t = 0; t < 4; ++t) {
                CHECK(is.weights[s](b, t) == doctest::Approx(must.weights[s][t]).epsilon(1e-12));
            }
        }
    }
}

TEST_CASE(
    "hard attention: the same parameters, one region at a time, and a gradient of the scores by the score function")
{
    auto model = model_with(normalize::softmax{});
    const auto hard = model.decoder.with(normalize::hard{.seed = 7});
    const auto annotations = model.encoder.encode(pictures);
    const auto is = hard.follow(annotations, words());
    for (const auto& weights : is.weights) {
        for (std::size_t b = 0; b < 2; ++b) {
            CHECK(*std::max_element(&weights(b, 0), &weights(b, 0) + 4) == 1);
            CHECK(weights(b, 0) + weights(b, 1) + weights(b, 2) + weights(b, 3) == 1);
        }
    }
    ad::tape<double> on;
    const auto lifted = ad::lift(on, model);
    const auto told = lifted.decoder.with(normalize::hard{.seed = 7}).follow(lifted.encoder.encode(pictures), words());
    const array<double, 1> excess{0.5, -2};
    on.backward(normalize::score_function_term(told.state.normalize, excess));
    const auto gradient = on.gradient(lifted.decoder.attention.score.v);
    CHECK(*std::max_element(gradient.data, gradient.data + 3,
                            [](double x, double y) { return std::abs(x) < std::abs(y); }) != 0);
}

TEST_CASE("decoding step by step equals all steps at once, and a search continues with the rows that it keeps")
{
    const auto model = model_with(normalize::softmax{});
    const auto annotations = random({2, 4, 4}, 5);
    captioning<double, std::remove_cvref_t<decltype(model.decoder)>> steps(model.decoder, annotations);
    decoding_by<double, decltype(steps)> at_work(steps, 2);
    const auto log_p = [](const std::vector<double>& scores, std::size_t row, std::size_t word) {
        double sum = 0;
        for (std::size_t i = 0; i < 7; ++i) sum += std::exp(scores[row * 7 + i]);
        return scores[row * 7 + word] - std::log(sum);
    };
    const told first = loops(model.decoder, annotations, 0, said[0]),
               second = loops(model.decoder, annotations, 1, said[1]);
    std::vector<double> scores(14), weights;
    steps.step(std::vector<std::uint32_t>{2, 2}, scores);
    CHECK(log_p(scores, 0, 4) == support::approx(-first.costs[0]));
    CHECK(log_p(scores, 1, 6) == support::approx(-second.costs[0]));
    steps.select(std::vector<std::size_t>{1, 0});
    steps.step(std::vector<std::uint32_t>{6, 4}, scores);
    CHECK(log_p(scores, 0, 3) == support::approx(-second.costs[1]));
    CHECK(log_p(scores, 1, 5) == support::approx(-first.costs[1]));
    steps.weights(1, weights);
    for (std::size_t t = 0; t < 4; ++t) CHECK(weights[t] == support::approx(first.weights[1][t]));

    // a beam is at least as probable as greedy search, and its score equals that of forced decoding
    captioning<double, std::remove_cvref_t<decltype(model.decoder)>> again(model.decoder, annotations),
        once_more(model.decoder, annotations);
    decoding_by<double, decltype(again)> by_beam(again, 2), by_step(once_more, 2);
    beam_options how;
    how.width = 5;
    how.normalization = length_normalization::none;
    how.at_most = {0, 5};
    const auto wide = beam<double>(by_beam, again.real(), how);
    const auto narrow = greedy<double>(by_step, once_more.real(), {.at_most = {0, 5}});
    for (std::size_t b = 0; b < 2; ++b) {
        CHECK(wide[b][0].log_probability >= narrow[b].log_probability - 1e-12);
        double cost = 0;
        for (const double each : loops(model.decoder, annotations, b, wide[b][0].words).costs) cost += each;
        CHECK(wide[b][0].log_probability == support::approx(-cost));
    }
}
