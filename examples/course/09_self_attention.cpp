// SPDX-License-Identifier: BSD-3-Clause
// test, optimized:

// # 9. Self-attention
//
// In **self-attention**, every word of a sentence is a query to all words of the same sentence. No state is carried
// from word to word, so all words are computed at once. Layers of self-attention with small networks between them make
// a **Transformer** (Vaswani et al. 2017). Ours sorts digits. The next digit depends on all digits before it:
//
//     5 2 9 0 7 3 = 0 2 3 5 7 9

#include <algorithm>
#include <cmath>

#include <heed/heed.hpp>
#include <heed/nn/feed_forward.hpp>
#include <heed/nn/layer_norm.hpp>
#include <heed/nn/positions.hpp>
#include <heed/papers/transformer.hpp>
#include <heed/train/adam.hpp>

#include "course.hpp"
#include "picture.hpp"

using namespace heed;
constexpr std::size_t D = 32, equals = 10, symbols = 11;  // D numbers for each symbol; = is symbol 10

// ## The model, on one page
//
// A **head** is an attention that computes its queries, keys and values from x, with its own matrices. With two heads:
//
//     head_i = softmax(Q_i K_iᵀ / √d) V_i,  Q_i = x W_Qi,  K_i = x W_Ki,  V_i = x W_Vi
//     MultiHead(x) = [head_1; head_2] W_O
//
// A layer has two parts: the heads, and a small network at each position; relu(a) = max(a, 0). A part's result is added
// to its input (a **residual**): gradients can pass by. A **layer norm** before it gives mean 0 and deviation 1.
//
//     x ← x + MultiHead(norm(x)),   x ← x + W_2 relu(W_1 norm(x))
//
// The model predicts the next symbol at every position at once. So no position may see a later one, which contains the
// answer: the **mask** `causal{}` gives later positions the weight 0.
//
// Attention compares contents and ignores positions. So we add to each symbol's vector a pattern for its **position**
// p: sin(p / 10000^(k/D)) for even k, and for the next k the cosine of the same angle.

template <class Heads, class Norm, class Network>
struct layer {
    Norm before_heads, before_network;
    Heads heads;
    Network network;

    auto operator()(const tensor auto& x) const  // [B,S,D]
    {
        const auto in = before_heads(x);
        const auto seen = ops::add(x, heads(heads.on(in), in, causal{}));
        return ops::add(seen, network(before_network(seen)));
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return ::layer{visit("before_heads", self.before_heads), visit("before_network", self.before_network),
                       visit("heads", self.heads), visit("network", self.network)};
    }
};
template <class Heads, class Norm, class Network>
layer(Norm, Norm, Heads, Network) -> layer<Heads, Norm, Network>;

template <class Matrix, class Layer, class Norm>
struct transformer {
    Matrix E;  // [11,D]: the symbols
    Layer first, second;
    Norm last;
    Matrix W;  // [D,11]

    auto embedded(const word_ids& given) const { return ops::swap_axes(ops::lookup(E, given)); }  // [S,B] -> [B,S,D]
    auto placed(const word_ids& given) const { return nn::sinusoidal_positions{}(embedded(given)); }
    auto scores(const word_ids& given) const  // of the next symbol, [S,B,11]
    {
        return ops::linear(ops::swap_axes(last(second(first(placed(given))))), W);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return ::transformer{visit("E", self.E), visit("first", self.first), visit("second", self.second),
                             visit("last", self.last), visit("W", self.W)};
    }
};
template <class Matrix, class Layer, class Norm>
transformer(Matrix, Layer, Layer, Norm, Matrix) -> transformer<Matrix, Layer, Norm>;

// ## Positions and the mask
//
// Without positions, 5 gets the same result in 5 2 9 as in 9 2 5. With the mask, the result for 2 does not depend on
// the symbols after it. Both hold for any weights, so we can test them before training.

word_ids row(const std::vector<std::uint32_t>& of)
{
    word_ids one(of.size(), 1);
    one.ids = of;
    return one;
}

bool same(const auto& x, std::size_t s, const auto& y, std::size_t t)  // position s of x and t of y, [1,S,D]
{
    const auto near = [](float a, float b) { return std::abs(a - b) < 1e-5f; };
    return std::equal(&x(0, s, 0), &x(0, s, 0) + D, &y(0, t, 0), near);
}

void look(const auto& model)
{
    const auto& heads = model.first.heads;
    const auto ask = [&](const auto& x, auto... mask) { return heads(heads.on(x), x, mask...); };
    const word_ids given = row({5, 2, 9}), turned = row({9, 2, 5}), other = row({5, 2, 0});
    const auto x = model.embedded(given), y = model.embedded(turned), z = model.embedded(other);
    course::holds("without positions, 5 gets the same result", same(ask(x), 0, ask(y), 2));
    course::holds("with positions, a different one", !same(ask(model.placed(given)), 0, ask(model.placed(turned)), 2));
    course::holds("with the mask, 2 does not see later symbols", same(ask(x, causal{}), 1, ask(z, causal{}), 1));
}

// ## Learning
//
// A list has N digits, the first N of ten shuffled ones. Only symbols after the equals sign count in the loss.

constexpr std::size_t N = 6, B = 64;

struct batch {
    word_ids given{2 * N, B};  // N digits, =, and N - 1 digits in order
    ops::expected_words<float> expected{word_ids(2 * N, B), std::vector<float>(2 * N * B)};
    explicit batch(std::uint64_t stream)
    {
        for (std::size_t b = 0; b < B; ++b) {
            std::vector<std::uint32_t> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
            for (std::size_t i = 0; i < N; ++i) std::swap(all[i], all[i + below(10 - i, stream, b * N + i)]);
            for (std::size_t i = 0; i < N; ++i) given(i, b) = all[i];
            std::sort(all.begin(), all.begin() + N);
            for (std::size_t i = 0; i < N; ++i) {
                given(N + i, b) = i == 0 ? equals : all[i - 1];
                expected.words(N + i, b) = all[i];
                expected.weights[(N + i) * B + b] = 1.0f / (N * B);
            }
        }
    }
};

int main(int argc, char** argv)
{
    course::pictures_to(argc, argv);
    random_source random{9};
    const auto make_layer = [&] {
        const auto norm = nn::make_layer_norm<float>(D);
        return layer{norm, norm, papers::vaswani2017::make_multi_head<float>(random, {.model = D, .heads = 2}),
                     nn::make_feed_forward<float>(random, D, 4 * D, ops::relu)};
    };
    const auto E = nn::gaussian<float>(random, symbols, D, 1.0), W = nn::glorot<float>(random, D, symbols);
    transformer model{E, make_layer(), make_layer(), nn::make_layer_norm<float>(D), W};
    look(model);
    ad::tape<float> tape;
    train::adam<float> adam({.rate = 0.003});
    for (int step = 1; step <= 500; ++step) {
        const batch some(random.next_stream());
        tape.clear();
        const auto taped = ad::lift(tape, model);
        const auto loss = ops::cross_entropy(taped.scores(some.given), some.expected);
        tape.backward(loss);
        adam.step(model, taped, tape, 1.0);
        if (step % 100 == 0) std::printf("step %d  loss %.4f\n", step, double(*loss.data()));
    }
    const batch unseen(random.next_stream());
    const auto loss = ops::cross_entropy(model.scores(unseen.given), unseen.expected);
    course::holds("on new lists, the loss is below 0.1", *loss.data() < 0.1f);
    std::vector<std::uint32_t> all{5, 2, 9, 0, 7, 3, equals};
    while (all.size() < 2 * N + 1) {  // a digit that it writes is read at the next step
        const auto scores = model.scores(row(all));
        const float* const p = &scores(all.size() - 1, 0, 0);
        all.push_back(static_cast<std::uint32_t>(std::max_element(p, p + symbols) - p));
    }
    course::holds("5 2 9 0 7 3 is sorted",
                  all == std::vector<std::uint32_t>{5, 2, 9, 0, 7, 3, equals, 0, 2, 3, 5, 7, 9});
    const auto x = model.second.before_heads(model.first(model.placed(row(all))));
    const auto memory = model.second.heads.on(x);
    std::vector<float> weights[2];
    std::vector<std::string> columns, rows;
    for (std::size_t s = 0; s < 2 * N; ++s) {
        columns.push_back(all[s] == equals ? "=" : std::to_string(all[s]));
        if (s < N) continue;
        rows.push_back(columns.back());
        const auto state = model.second.heads.start(memory);
        const auto seen = model.second.heads.step(memory, ops::step_of(x, s), state, lengths{s + 1});
        for (std::size_t t = 0; t < 2 * N; ++t)
            for (std::size_t i : {0u, 1u}) weights[i].push_back(seen.weights(0, i, t));
    }
    course::picture("09_head_1", weights[0], columns, rows, {}, "head 1 of the second layer");
    course::picture("09_head_2", weights[1], columns, rows, {}, "head 2 of the second layer");
}

// A row is the symbol that the model reads; it writes the digit of the next row. One of the heads often looks at it.
//
// ## Exercises
//
// Write your answers into `exercises/09.hpp`; `exercise_09` grades them.
// - **a.** Compute causal self-attention in loops: from queries, keys and values to contexts.
// - **b.** Compute the pattern of a position.
