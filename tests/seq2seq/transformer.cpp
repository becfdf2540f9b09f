// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/score/rotary.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/objective.hpp>
#include <heed/seq2seq/systems/vaswani2017.hpp>
#include <support/approx.hpp>
#include <support/scalar_attention.hpp>
#include <support/sentences.hpp>
#include <support/tensors.hpp>

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;
using support::random;

namespace {

// Different lengths, a repeated word, and a sentence without words: attention can read only its end.
const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};

constexpr papers::vaswani2017::translator_sizes small{8, 8, 4, 5, 2, 2, 2, 30};

template <class... Parts>
auto translator(Parts... parts)
{
    return papers::vaswani2017::translator<double>(3, small, parts...);
}

/// Adds rotary positions to the decoder's self-attention.
auto turned(const auto& model)
{
    const auto layer_of = [](const auto& layer) {
        const attention one{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}};
        const multi_head self{std::vector(2, one), layer.self.W_Q, layer.self.W_K, layer.self.W_V, layer.self.W_O};
        return transformer_decoder_layer{
            self, layer.cross, layer.around_self, layer.around_cross, layer.feed_forward, layer.around_feed_forward};
    };
    std::vector<decltype(layer_of(model.decoder[0]))> decoder;
    for (const auto& each : model.decoder) decoder.push_back(layer_of(each));
    return transformer{model.words, model.positions,     model.encoder, model.after_encoder,
                       decoder,     model.after_decoder, model.b};
}

void check_gradient(auto model)
{
    // At 0, where new biases are, relu has a kink.
    std::uint64_t stream = 100;
    for_each_parameter(model, [&](const std::string&, auto& x) {
        const auto to = view_of(x);
        const auto noise = random({to.size()}, stream++);
        for (std::size_t i = 0; i < to.size(); ++i) to.data[i] += 0.1 * noise(i);
    });
    const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));
    const auto result = ad::grad_check(model, [&](auto&, const auto& lifted) { return lifted.loss(examples, 0.1); });
    CHECK_MESSAGE(result, result.text());
    CHECK(result.entries == parameter_count(model));
}

// The paper's equations for one sentence, by scalar loops.

namespace scalar = support::scalar;
using scalar::matrix;
using scalar::numbers;

numbers sum(numbers a, const numbers& b)
{
    for (std::size_t k = 0; k < a.size(); ++k) a[k] += b[k];
    return a;
}

numbers normalized(const auto& norm, const numbers& x)
{
    double mean = 0, variance = 0;
    for (const double v : x) mean += v / static_cast<double>(x.size());
    for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
    numbers y;
    for (std::size_t k = 0; k < x.size(); ++k)
        y.push_back(norm.gain(k) * (x[k] - mean) / std::sqrt(variance + 1e-5) + norm.bias(k));
    return y;
}

/// Concat(head_1, …) W_O of one query, with head_i = softmax(q W_Q^i (K W_K^i)ᵀ / √d_k) V W_V^i, over the first
/// `visible` rows of `source`.
numbers heads(const auto& of, const numbers& query, const matrix& source, std::size_t visible)
{
    const matrix W_Q = scalar::matrix_of(of.W_Q), W_K = scalar::matrix_of(of.W_K), W_V = scalar::matrix_of(of.W_V);
    const std::size_t n = of.heads.size(), d = W_Q[0].size() / n;
    numbers all(n * d, 0.0);
    for (std::size_t head = 0; head < n; ++head) {
        const auto part = [&](const numbers& x, const matrix& W) {
            const numbers y = scalar::times(x, W);
            return numbers(y.begin() + static_cast<std::ptrdiff_t>(head * d),
                           y.begin() + static_cast<std::ptrdiff_t>((head + 1) * d));
        };
        numbers weights;
        double total = 0;
        for (std::size_t j = 0; j < visible; ++j) {
            weights.push_back(
                std::exp(scalar::inner(part(query, W_Q), part(source[j], W_K)) / std::sqrt(static_cast<double>(d))));
            total += weights.back();
        }
        for (std::size_t j = 0; j < visible; ++j) {
            const numbers value = part(source[j], W_V);
            for (std::size_t k = 0; k < d; ++k) all[head * d + k] += weights[j] / total * value[k];
        }
    }
    return scalar::times(all, scalar::matrix_of(of.W_O));
}

numbers fed_forward(const auto& f, const numbers& x)
{
    numbers hidden = sum(scalar::times(x, scalar::matrix_of(f.W_1)), scalar::vector_of(f.b_1));
    for (double& h : hidden) {
        constexpr bool smooth =
            std::is_same_v<std::remove_cvref_t<decltype(f.activation)>, std::remove_cvref_t<decltype(ops::gelu)>>;
        h = smooth ? 0.5 * h * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (h + 0.044715 * h * h * h)))
                   : std::max(h, 0.0);
    }
    return sum(scalar::times(hidden, scalar::matrix_of(f.W_2)), scalar::vector_of(f.b_2));
}

template <class Matrix, class Activation>
numbers fed_forward(const nn::gated_feed_forward<Matrix, Activation>& f, const numbers& x)
{
    numbers gate = scalar::times(x, scalar::matrix_of(f.W_1)), up = scalar::times(x, scalar::matrix_of(f.W_3));
    for (std::size_t i = 0; i < up.size(); ++i) up[i] *= gate[i] / (1 + std::exp(-gate[i]));
    return scalar::times(up, scalar::matrix_of(f.W_2));
}

/// norm(x_i + f(x, i)), or x_i + f(norm(x), i), for every row.
template <class Norm>
matrix around(const nn::post_norm<Norm>& residual, const matrix& x, const auto& f)
{
    matrix y;
    for (std::size_t i = 0; i < x.size(); ++i) y.push_back(normalized(residual.norm, sum(x[i], f(x, i))));
    return y;
}
template <class Norm>
matrix around(const nn::pre_norm<Norm>& residual, const matrix& x, const auto& f)
{
    matrix in, y;
    for (const numbers& row : x) in.push_back(normalized(residual.norm, row));
    for (std::size_t i = 0; i < x.size(); ++i) y.push_back(sum(x[i], f(in, i)));
    return y;
}

matrix after_last(const nn::identity&, const matrix& x) { return x; }
template <class Vector>
matrix after_last(const nn::layer_norm<Vector>& norm, const matrix& x)
{
    matrix y;
    for (const numbers& row : x) y.push_back(normalized(norm, row));
    return y;
}

matrix embedded(const auto& model, const auto& table, const std::vector<std::uint32_t>& words)
{
    const std::size_t D = shape_of(table)[1];
    matrix x;
    for (std::size_t i = 0; i < words.size(); ++i) {
        numbers row;
        for (std::size_t k = 0; k < D; ++k) {
            const double angle = static_cast<double>(i) /
                                 std::pow(10000.0, 2 * std::floor(static_cast<double>(k) / 2) / static_cast<double>(D));
            double place = k % 2 == 0 ? std::sin(angle) : std::cos(angle);
            if constexpr (requires { model.positions.table; }) place = model.positions.table(i, k);
            row.push_back(std::sqrt(static_cast<double>(D)) * table(words[i], k) + place);
        }
        x.push_back(row);
    }
    return x;
}

/// log p of each word of a translation and of its end.
numbers log_probabilities(const auto& model, id_sentence source, const id_sentence& target)
{
    source.push_back(special_ids{}.end);
    matrix x = embedded(model, model.words.source(), source);
    for (const auto& layer : model.encoder) {
        x = around(layer.around_attention, x,
                   [&](const matrix& in, std::size_t i) { return heads(layer.attention, in[i], in, in.size()); });
        x = around(layer.around_feed_forward, x,
                   [&](const matrix& in, std::size_t i) { return fed_forward(layer.feed_forward, in[i]); });
    }
    x = after_last(model.after_encoder, x);
    id_sentence previous{special_ids{}.begin}, expected = target;
    previous.insert(previous.end(), target.begin(), target.end());
    expected.push_back(special_ids{}.end);
    matrix y = embedded(model, model.words.target(), previous);
    for (const auto& layer : model.decoder) {
        y = around(layer.around_self, y,
                   [&](const matrix& in, std::size_t i) { return heads(layer.self, in[i], in, i + 1); });
        y = around(layer.around_cross, y,
                   [&](const matrix& in, std::size_t i) { return heads(layer.cross, in[i], x, x.size()); });
        y = around(layer.around_feed_forward, y,
                   [&](const matrix& in, std::size_t i) { return fed_forward(layer.feed_forward, in[i]); });
    }
    y = after_last(model.after_decoder, y);
    numbers result;
    for (std::size_t i = 0; i < y.size(); ++i) {
        const numbers scores =
            sum(scalar::times(y[i], scalar::matrix_of(model.words.output())), scalar::vector_of(model.b));
        double total = 0;
        for (const double s : scores) total += std::exp(s);
        result.push_back(scores[expected[i]] - std::log(total));
    }
    return result;
}

}  // namespace

TEST_CASE("the probability of every word equals the paper's equations")
{
    const auto check = [](auto model) {
        std::uint64_t stream = 200;
        for_each_parameter(model, [&](const std::string&, auto& x) {
            const auto to = view_of(x);
            const auto noise = random({to.size()}, stream++);
            for (std::size_t i = 0; i < to.size(); ++i) to.data[i] += 0.2 * noise(i);
        });
        const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));
        const auto led = force<double>(model, examples.source, pointers(targets));
        for (std::size_t b = 0; b < sources.size(); ++b) {
            const numbers must = log_probabilities(model, sources[b], targets[b]);
            REQUIRE(led[b].log_probabilities.size() == must.size());
            for (std::size_t i = 0; i < must.size(); ++i)
                CHECK(led[b].log_probabilities[i] == support::approx(must[i]));
        }
    };
    check(translator());
    check(translator(separate_tables_factory{}, nn::learned_positions_factory{}, nn::pre_norm_factory{},
                     nn::feed_forward_factory{ops::gelu}));
    check(translator(shared_table_factory{}, nn::sinusoidal_positions{}, nn::pre_norm_factory{},
                     nn::gated_feed_forward_factory{}));
}

TEST_CASE("every parameter's gradient equals finite differences")
{
    check_gradient(translator());
    check_gradient(translator(separate_tables_factory{}, nn::learned_positions_factory{}, nn::pre_norm_factory{},
                              nn::feed_forward_factory{ops::gelu}));
}

TEST_CASE("neither the padding nor its embedding changes a result")
{
    auto model = translator(separate_tables_factory{});
    const double alone =
        model.loss(make_training_batch<double>(pointers({sources[1]}), pointers({targets[2]}))).data()[0];
    for (double& x : std::span(&model.words.source_table(0, 0), small.model)) x = NAN;
    for (double& x : std::span(&model.words.target_table(0, 0), small.model)) x = NAN;
    ad::tape<double> on;
    const auto lifted = ad::lift(on, model);
    auto both = make_training_batch<double>(pointers({sources[1], sources[2]}), pointers({targets[2], targets[1]}));
    for (std::size_t s = 0; s < both.targets.words.steps; ++s) both.targets.weights[s * 2 + 1] = 0;
    const auto loss = lifted.loss(both);
    CHECK(loss.data()[0] == doctest::Approx(alone).epsilon(1e-12));
    on.backward(loss);
    const auto d = on.gradient(lifted.encoder[0].attention.W_K);
    for (std::size_t i = 0; i < d.size(); ++i) CHECK(std::isfinite(d.data[i]));
}

TEST_CASE("objectives get the weights of the alignment layer, and their gradients equal finite differences")
{
    auto model = translator();
    const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));
    CHECK(model.follow(examples, 0.1).loss().data()[0] ==
          doctest::Approx(model.loss(examples, 0.1).data()[0]).epsilon(1e-12));
    const auto seen = model.follow(examples);
    const auto led = force<double>(model, examples.source, pointers(targets));
    for (std::size_t b = 0; b < sources.size(); ++b) {
        for (std::size_t s = 0; s < led[b].weights.size(); ++s) {
            for (std::size_t t = 0; t < led[b].weights[s].size(); ++t)
                CHECK(seen.weights[s](b, t) == doctest::Approx(led[b].weights[s][t]).epsilon(1e-12));
        }
    }
    const auto result = ad::grad_check(model, [&](auto&, const auto& lifted) {
        return loss_with(lifted, examples, objective::doubly_stochastic{3.0});
    });
    CHECK_MESSAGE(result, result.text());
}

TEST_CASE("step by step equals all steps at once")
{
    const auto check = [](const auto& model) {
        const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));
        const double loss = model.loss(examples).data()[0];
        double sum = 0;
        for (const auto& each : force<double>(model, examples.source, pointers(targets))) sum -= each.log_probability();
        CHECK(sum == doctest::Approx(loss).epsilon(1e-12));

        const auto several = beam<double>(model, examples.source, {.width = 5});
        std::vector<id_sentence> best;
        for (std::size_t b = 0; b < 4; ++b) best.push_back(several[b].front().words);
        // If a hypothesis lost a key, its probability would differ from that of forced decoding.
        const auto again = force<double>(model, examples.source, pointers(best));
        for (std::size_t b = 0; b < 4; ++b) {
            CHECK(again[b].log_probability() == support::approx(several[b].front().log_probability));
        }
        const packed<double, std::remove_cvref_t<decltype(model)>> fast(model);
        CHECK(beam<double>(fast, examples.source, {.width = 5})[2].front().words == best[2]);
    };
    check(translator());
    check(translator(tied_tables_factory{}, nn::learned_positions_factory{}, nn::pre_norm_factory{},
                     nn::feed_forward_factory{ops::gelu}));
    check(turned(translator()));  // the position of a word affects its scores
}

TEST_CASE("a shared table needs one vocabulary, and learned positions need a table that is long enough")
{
    auto other = small;
    other.source_vocabulary = 9;
    CHECK_THROWS_WITH_AS((void)papers::vaswani2017::translator<double>(1, other),
                         "shared_table: 9 source words and 8 target words; to share embeddings, both sides need "
                         "one vocabulary",
                         error);
    other = small;
    other.longest = 4;
    const auto model =
        papers::vaswani2017::translator<double>(1, other, shared_table_factory{}, nn::learned_positions_factory{});
    CHECK_THROWS_WITH_AS((void)model.open(make_source(pointers(sources))),
                         "learned_positions: a sentence of 5 words, but the table has 4 positions; make the table "
                         "as long as the longest sentence, or skip longer sentences",
                         error);
}
