// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/parts.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/stacked.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/scalar_translation.hpp>
#include <support/sentences.hpp>
#include <support/tensors.hpp>

// The decoder's policies and stacked cells, each against scalar loops over one sentence: a wrong gate, initial state,
// concatenation order or query state changes every probability.

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;
using support::random;
namespace scalar = support::scalar;

namespace {

constexpr std::size_t V = 9, E = 3, H = 4, A = 5, L = 2;

const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};
const auto batch = make_training_batch<double>(pointers(sources), pointers(targets));

/// All parameters differ, including biases.
auto gru_from(std::size_t input, std::uint64_t stream)
{
    return nn::gru{random({input, 3 * H}, stream), random({3 * H}, stream + 1), random({H, 2 * H}, stream + 2),
                   random({H, H}, stream + 3)};
}
auto lstm_from(std::size_t input, std::uint64_t stream)
{
    return nn::lstm{random({input, 4 * H}, stream), random({4 * H}, stream + 1), random({H, 4 * H}, stream + 2)};
}

/// The state of a cell in the loops: h of a GRU; h and c of an LSTM.
using state = std::vector<scalar::numbers>;

scalar::matrix below(scalar::matrix rows, const scalar::matrix& more)
{
    rows.insert(rows.end(), more.begin(), more.end());
    return rows;
}

/// One step of a cell; `more` contains further rows of its input matrix.
template <class Matrix, class Vector>
state step(const nn::gru<Matrix, Vector>& cell, const scalar::matrix& more, const scalar::numbers& x, const state& s)
{
    const scalar::matrix W = below(scalar::matrix_of(cell.W), more), U = scalar::matrix_of(cell.U);
    const scalar::matrix b{scalar::vector_of(cell.b)};
    const auto part = [](const scalar::matrix& m, std::size_t k) { return scalar::columns(m, k * H, H); };
    const scalar::gated_unit unit{part(W, 0),         part(W, 1),         part(W, 2),
                                  part(U, 0),         part(U, 1),         scalar::matrix_of(cell.U_h),
                                  part(b, 0).front(), part(b, 1).front(), part(b, 2).front()};
    return {scalar::next_state(unit, x, s[0])};
}
template <class Matrix, class Vector>
state step(const nn::lstm<Matrix, Vector>& cell, const scalar::matrix& more, const scalar::numbers& x, const state& s)
{
    const scalar::numbers a = scalar::times(x, below(scalar::matrix_of(cell.W), more));
    const scalar::numbers u = scalar::times(s[0], scalar::matrix_of(cell.U));
    const auto sum = [&](std::size_t k) { return a[k] + u[k] + cell.b(k); };
    const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
    state next(2, scalar::numbers(H));
    for (std::size_t j = 0; j < H; ++j) {
        next[1][j] = sigmoid(sum(H + j)) * s[1][j] + sigmoid(sum(j)) * std::tanh(sum(3 * H + j));
        next[0][j] = sigmoid(sum(2 * H + j)) * std::tanh(next[1][j]);
    }
    return next;
}

/// Two layers with a shortcut around the second: the output first, then both layers' states.
template <class Cell>
state step(const nn::stacked<Cell>& cell, const scalar::matrix& more, const scalar::numbers& x, const state& s)
{
    const state lower = step(cell.layers[0], more, x, {s[1], s[2]});
    const state upper = step(cell.layers[1], {}, lower[0], {s[3], s[4]});
    scalar::numbers z = upper[0];
    if (cell.between == nn::shortcut::residual) {
        for (std::size_t j = 0; j < H; ++j) z[j] += lower[0][j];
    }
    return {z, lower[0], lower[1], upper[0], upper[1]};
}

scalar::numbers sum_of(scalar::numbers a, const scalar::numbers& b)
{
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
}

scalar::numbers row_of(const array<double, 2>& x, std::size_t b)
{
    return {x.data() + b * x.shape()[1], x.data() + (b + 1) * x.shape()[1]};
}

/// −log p of the words of target b, in order. `ask(y, fed, before, attend)` returns the next state and the context;
/// `readout(s, y, c)` the input of the last layer.
scalar::numbers costs(const auto& decoder, const auto& source, std::size_t b, state s, const auto& ask,
                      const auto& readout, const scalar::matrix& W_o, const scalar::numbers& bias)
{
    const auto& score = decoder.attention.score;
    const auto e = scalar::additive(scalar::matrix_of(score.W), scalar::matrix_of(score.U), scalar::vector_of(score.v));
    scalar::matrix sentence;
    const std::size_t D = shape_of(source.annotations)[2], T = shape_of(source.annotations)[1];
    for (std::size_t t = 0; t < batch.source.real[b]; ++t) {
        const double* at = source.annotations.data() + (b * T + t) * D;
        sentence.emplace_back(at, at + D);
    }
    const auto attend = [&](const scalar::numbers& q) {
        return scalar::attend(e, false, sentence, {{q}}, D).front().context;
    };
    scalar::numbers input_feeding(L, 0.0), all;
    for (std::size_t i = 0; i <= targets[b].size(); ++i) {
        const scalar::numbers y = row_of(decoder.embedding, batch.previous(i, b));
        auto [next, context] = ask(y, input_feeding, s, attend);
        s = next;
        input_feeding = readout(s[0], y, context);
        const scalar::numbers scores = sum_of(scalar::times(input_feeding, W_o), bias);
        double sum = 0;
        for (const double x : scores) sum += std::exp(x);
        all.push_back(std::log(sum) - scores[batch.targets.words(i, b)]);
    }
    return all;
}

/// The loss of each word, plain and taped, and the step-by-step scores, against the loops.
void check(const auto& decoder, const auto& source, const auto& first, const auto& ask, const auto& readout)
{
    const auto last = decoder.output();
    const scalar::matrix W_o = scalar::matrix_of(last.W);
    const scalar::numbers bias = scalar::vector_of(last.b);
    auto one = batch;
    auto start = decoder.open(source, batch.source.real);
    double total = 0;
    for (std::size_t b = 0; b < sources.size(); ++b) {
        CAPTURE(b);
        const auto must = costs(decoder, source, b, first(b), ask, readout, W_o, bias);
        for (std::size_t i = 0; i < must.size(); ++i) {
            std::fill(one.targets.weights.begin(), one.targets.weights.end(), 0.0);
            one.targets.weights[i * 4 + b] = 1;
            CHECK(decoder.loss(source, one)() == doctest::Approx(must[i]).epsilon(1e-12));
            total += must[i];
        }
    }
    ad::tape<double> on;
    CHECK(ad::lift(on, decoder).loss(source, batch).data()[0] == doctest::Approx(total).epsilon(1e-12));

    double led = 0;
    auto now = std::move(start.state);
    for (std::size_t i = 0; i < batch.previous.steps; ++i) {
        word_ids previous(1, 4);
        for (std::size_t b = 0; b < 4; ++b) previous(0, b) = batch.previous(i, b);
        auto next = decoder.advance(start.memory, now, previous);
        for (std::size_t b = 0; b < 4; ++b) {
            if (i > targets[b].size()) continue;
            const scalar::numbers t = row_of(ops::block(next.readout, 0), b);
            const scalar::numbers scores = sum_of(scalar::times(t, W_o), bias);
            double sum = 0;
            for (const double x : scores) sum += std::exp(x);
            led += std::log(sum) - scores[batch.targets.words(i, b)];
        }
        now = std::move(next.state);
    }
    CHECK(led == doctest::Approx(total).epsilon(1e-12));
}

attention<score::additive<array<double, 2>, array<double, 1>>, normalize::softmax, combine::weighted_sum>
attention_over(std::size_t D)
{
    return {{random({H, A}, 60), random({D, A}, 61), random({A}, 62)}, {}, {}};
}

const auto source_side = [] {
    const bidirectional_encoder encoder{random({V, E}, 1), gru_from(E, 10), gru_from(E, 20),
                                        nn::trained_start{random({H}, 30)}, nn::trained_start{random({H}, 31)}};
    return encoder.encode(batch.source);
}();

const initial_state::tanh_layer from_layer{random({H, H}, 46), random({H}, 47)};
scalar::numbers layer_of(std::size_t b)
{
    return scalar::tanh_layer(row_of(source_side.start, b), scalar::matrix_of(from_layer.W_s),
                              scalar::vector_of(from_layer.b_s));
}

}  // namespace

TEST_CASE("the query is the previous state; the output layer reads the state: Choi et al. 2018")
{
    const decoder d{attention_over(2 * H),
                    random({V, E}, 40),
                    lstm_from(E, 41),
                    query_from::previous_state{random({2 * H, 4 * H}, 45)},
                    from_layer,
                    output::linear{random({H, V}, 52), random({V}, 53)}};
    const auto first = [](std::size_t b) { return state{layer_of(b), scalar::numbers(H, 0.0)}; };
    const auto ask = [&d](const auto& y, const auto&, const state& s, const auto& attend) {
        const scalar::numbers c = attend(s[0]);
        return std::pair(step(d.cell, scalar::matrix_of(d.asks.C), scalar::joined(y, c), s), c);
    };
    check(d, source_side, first, ask, [](const auto& s, const auto&, const auto&) { return s; });
}

TEST_CASE("the query is an intermediate state, and a second unit reads the context: Sankaran et al. 2016, eq. 1 to 3")
{
    const decoder d{attention_over(2 * H),
                    random({V, E}, 40),
                    gru_from(E, 41),
                    query_from::intermediate_state{gru_from(2 * H, 70)},
                    from_layer,
                    output::two_layers{random({H, L}, 48), random({E, L}, 49), random({2 * H, L}, 50), random({L}, 51),
                                       random({L, V}, 52), random({V}, 53)}};
    const auto first = [](std::size_t b) { return state{layer_of(b)}; };
    const auto ask = [&d](const auto& y, const auto&, const state& s, const auto& attend) {
        const state between = step(d.cell, {}, y, s);
        const scalar::numbers c = attend(between[0]);
        return std::pair(step(d.asks.second, {}, c, between), c);
    };
    const auto readout = [&d](const auto& s, const auto& y, const auto& c) {
        const auto& r = d.readout;
        const scalar::numbers of_words = sum_of(scalar::times(y, scalar::matrix_of(r.V_o)), scalar::vector_of(r.b_o));
        return scalar::hidden(
            {scalar::times(s, scalar::matrix_of(r.U_o)), of_words, scalar::times(c, scalar::matrix_of(r.C_o))});
    };
    check(d, source_side, first, ask, readout);
}

TEST_CASE(
    "the query is the current state, and the attentional vector is fed back: Luong et al. 2015, eq. 5 and 6, §3.3")
{
    const auto current = [](const auto& d, const scalar::matrix& more) {
        return [&d, more](const auto& y, const auto& input_feeding, const state& s, const auto& attend) {
            const state next = step(d.cell, more, more.empty() ? y : scalar::joined(y, input_feeding), s);
            return std::pair(next, attend(next[0]));
        };
    };
    const auto readout_of = [](const array<double, 2>& W_c) {
        return [W = scalar::matrix_of(W_c)](const auto& s, const auto&, const auto& c) {
            return scalar::hidden({scalar::times(scalar::joined(c, s), W)});
        };
    };
    SUBCASE("without input feeding")
    {
        const decoder d{attention_over(2 * H),
                        random({V, E}, 40),
                        gru_from(E, 41),
                        query_from::current_state{},
                        from_layer,
                        output::attentional{random({3 * H, L}, 48), random({L, V}, 52), random({V}, 53)}};
        const auto first = [](std::size_t b) { return state{layer_of(b)}; };
        check(d, source_side, first, current(d, {}), readout_of(d.readout.W_c));
    }
    SUBCASE("with input feeding; two layers start from the encoder's last states")
    {
        // The encoder runs layer by layer over the whole sentence, the decoder step by step.
        nn::shortcut between = nn::shortcut::none;
        SUBCASE("without a shortcut") {}
        SUBCASE("with a shortcut, after reading backward") { between = nn::shortcut::residual; }
        const direction reads = between == nn::shortcut::none ? direction::forward : direction::backward;
        const nn::stacked encoded_source{std::vector{lstm_from(E, 80), lstm_from(H, 84)}, between};
        const forward_encoder encoder{random({V, E}, 1), encoded_source, nn::trained_start{random({H}, 30)}, reads};
        const auto source = encoder.encode(batch.source);
        const auto last_of = [&](std::size_t b, const auto& each) {
            const scalar::numbers h = scalar::vector_of(encoder.start.value), zero(H, 0.0);
            state s{h, h, zero, h, zero};
            const std::size_t n = batch.source.real[b];
            for (std::size_t i = 0; i < n; ++i) {
                const std::size_t t = reads == direction::forward ? i : n - 1 - i;
                s = step(encoded_source, {}, row_of(encoder.embedding, batch.source.words(t, b)), s);
                each(t, s[0]);
            }
            return s;
        };
        for (std::size_t b = 0; b < 4; ++b) {
            const state last = last_of(b, [&](std::size_t t, const scalar::numbers& z) {
                for (std::size_t j = 0; j < H; ++j) CHECK(source.annotations(b, t, j) == support::approx(z[j]));
            });
            for (std::size_t j = 0; j < H; ++j) {
                CHECK(source.start(b, j) == support::approx(last[0][j]));
                CHECK(source.whole(b, j) == support::approx(last[0][j]));
            }
        }
        const decoder d{
            attention_over(H),
            random({V, E}, 40),
            nn::stacked{std::vector{lstm_from(E, 90), lstm_from(H, 94)}, between},
            query_from::current_state{},
            initial_state::last_state{},
            output::input_feeding{output::attentional{random({2 * H, L}, 48), random({L, V}, 52), random({V}, 53)},
                                  random({L, 4 * H}, 98)}};
        const auto first = [&](std::size_t b) { return last_of(b, [](std::size_t, const auto&) {}); };
        check(d, source, first, current(d, scalar::matrix_of(d.readout.F)), readout_of(d.readout.of.W_c));
    }
}

TEST_CASE("the next step reads the readout with the dropout that the output layer sees")
{
    const decoder d{
        fixed_context{},
        random({V, E}, 40),
        gru_from(E, 41),
        query_from::current_state{},
        from_layer,
        output::input_feeding{output::attentional{random({3 * H, L}, 48), random({L, V}, 52), random({V}, 53)},
                              random({L, 3 * H}, 98)}};
    ad::tape<double> on;
    const auto lifted = ad::lift(on, d);
    random_source mine{5, 0}, theirs{5, 0};
    const double is = lifted.loss(source_side, batch, 0.0, nn::dropout{0.5, &mine}).data()[0];

    const nn::dropout drop{0.5, &theirs};
    const auto y = ops::clear_ended(drop(ops::lookup(lifted.embedding, batch.previous)), batch.target_lengths());
    const auto c = on.constant(source_side.whole);
    auto s = lifted.start(lifted.cell, source_side);
    auto t = on.constant(filled<double, 2>({4, L}, 0.0));
    std::vector<decltype(t)> all;
    for (std::size_t i = 0; i < batch.previous.steps; ++i) {
        const auto x = ops::addmm(ops::block(lifted.cell.project(y), i), t, lifted.readout.F);
        s = lifted.cell.step(x, s);
        t = drop(lifted.readout.read(s, ops::block(y, i), c));
        all.push_back(t);
    }
    const auto& last = lifted.readout.of;
    CHECK(is == ops::cross_entropy(ops::stack(all), last.W_o, last.b, batch.targets, 0.0).data()[0]);
    CHECK(mine.next_stream() == theirs.next_stream());
}

TEST_CASE("the policies' parameters have names in the decoder, in the order of the files")
{
    random_source random{1, 0};
    const auto names_of = [](const auto& model) {
        std::string names;
        for_each_parameter(model, [&](const std::string& name, const auto&) { names += name + " "; });
        return names;
    };
    const auto made = [&](const auto& parts) {
        return make_decoder(nn::initializers<double>{random}, fixed_context{}, {V, E, H, 2 * H, L}, parts);
    };
    CHECK(names_of(made(parts{})) == "embedding cell.W cell.b cell.U cell.U_h C W_s b_s U_o V_o C_o b_o W_o b ");
    CHECK(names_of(made(parts{}
                            .with_cells(nn::stacked_factory<nn::lstm_factory>{})
                            .with_query_from(query_from::current_state{})
                            .with_start(initial_state::last_state{})
                            .with_readout(output::input_feeding_factory{}))) ==
          "embedding cell.layers.0.W cell.layers.0.b cell.layers.0.U cell.layers.1.W cell.layers.1.b cell.layers.1.U "
          "W_c W_o b F ");
    CHECK(
        names_of(made(parts{}
                          .with_query_from(query_from::intermediate_state_factory{})
                          .with_readout(output::two_layers_factory{}))) ==
        "embedding cell.W cell.b cell.U cell.U_h second.W second.b second.U second.U_h W_s b_s U_o V_o C_o b_o W_o b ");
}

// The code of docs/how_to/choose_parts.md; tests/quotes.cmake compares them.
namespace mine {

// section: part
/// A learned s_0, the same for every sentence.
template <class Vector>
struct learned_start {
    Vector s_0;  // [H]

    auto operator()(const auto& cell, const auto& source) const
    {
        return nn::begin_of(cell, ops::repeat(s_0, shape_of(source.start)[0]));
    }
    static auto parameters(auto& self, auto&& visit) { return mine::learned_start{visit("s_0", self.s_0)}; }
};
template <class Vector>
learned_start(Vector) -> learned_start<Vector>;
// end

}  // namespace mine

TEST_CASE("a system accepts a custom part")
{
    const std::size_t words = 9;

    // section: factory
    using namespace heed::seq2seq;
    auto with =
        parts{}
            .with_start([](auto& init, const auto& n) { return mine::learned_start{init.small_vector(n.hidden)}; })
            .with_cells(nn::stacked_factory{2, nn::lstm_factory{}})  // a ready-made factory with options
            .with_query_from(query_from::current_state{});           // a finished part
    auto model = make_translator<float>(1, {.source_vocabulary = words, .target_vocabulary = words, .hidden = 16},
                                        attentions::additive_factory{}, with);
    // end

    CHECK(shape_of(model.decoder.start.s_0) == shape_of_rank<1>{16});
    CHECK(model.decoder.cell.layers.size() == 2);
    CHECK(model.loss(make_training_batch<float>(pointers(sources), pointers(targets)))() > 0);
}

TEST_CASE("a function can make any part, and the model is the same, bit for bit")
{
    const sizes n{8, 9, E, H, A};
    const auto check = [&](const auto& ready, const auto& own) {
        const auto is = make_translator<double>(3, n, attentions::additive_factory{}, own, nn::glorot<double>);
        const auto must = make_translator<double>(3, n, attentions::additive_factory{}, ready, nn::glorot<double>);
        std::vector<double> expected;
        for_each_parameter(must, [&](const std::string&, const auto& x) {
            expected.insert(expected.end(), x.data(), x.data() + x.size());
        });
        std::size_t i = 0;
        for_each_parameter(is, [&](const std::string&, const auto& x) {
            for (std::size_t k = 0; k < x.size(); ++k) CHECK(x.data()[k] == expected.at(i++));
        });
        CHECK(i == expected.size());
    };
    check(parts{}, parts{}.with_cells([](auto& init, const nn::cell_sizes& k) {
        return nn::gru{init.glorot(k.input, 3 * k.hidden), init.zeros(3 * k.hidden), init.recurrent(2, k.hidden),
                       init.recurrent(1, k.hidden)};
    }));
    check(parts{}, parts{}.with_embeddings(
                       [](auto& init, const auto& k) { return init.gaussian(k.vocabulary, k.embedding, 0.1); }));
    check(parts{}, parts{}.with_query_from([](auto& init, const decoder_sizes& k) {
        return query_from::previous_state{init.glorot(k.context, k.gates)};
    }));
    check(parts{}.with_readout(output::linear_factory{}), parts{}.with_readout([](auto& init, const auto& k) {
        return output::linear{init.glorot(k.hidden, k.vocabulary), init.zeros(k.vocabulary)};
    }));
    // Annotations have the width of sizes::width() unless their factory has `width`.
    check(parts{}, parts{}.with_encoder([](auto& init, const auto& k) {
        CHECK(k.annotation == 2 * H);
        return bidirectional_encoder{k.embed(init), k.cell(init), k.cell(init), nn::trained_start{init.zeros(k.hidden)},
                                     nn::trained_start{init.zeros(k.hidden)}};
    }));
    const auto table = random({8, E}, 1);
    const auto given =
        make_translator<double>(3, n, attentions::additive_factory{}, parts{}.with_embeddings(table)).encoder;
    CHECK(support::same_bits(given.embedding, table));
}

TEST_CASE("maxout")
{
    CHECK_GRADIENT([](const auto& x) { return ops::maxout(x); }, random({3, 6}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::maxout(x); }, random({2, 1, 2}, 1));
    CHECK(support::contains(support::message_of<shape_error>([] { ops::maxout(random({2, 3}, 1)); }), "must be even"));
}

TEST_CASE("maxout is the maximum of each pair of neighbors")
{
    const auto check = [](const auto& x) {
        ad::tape<double> on;
        const auto plain = ops::maxout(x), taped = copy_of(ops::maxout(on.parameter(x)).value());
        const std::size_t n = shape_of(x).back(), rows = x.size() / n;
        REQUIRE(plain.size() == rows * n / 2);
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t i = 0; i < n / 2; ++i) {
                const double* const pair = x.data() + r * n + 2 * i;
                CHECK(plain.data()[r * n / 2 + i] == std::max(pair[0], pair[1]));
                CHECK(taped.data()[r * n / 2 + i] == std::max(pair[0], pair[1]));
            }
        }
    };
    check(random({3, 6}, 1));
    check(random({2, 3, 8}, 2));
    check(random({1, 2}, 3));
}
