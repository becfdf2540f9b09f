// SPDX-License-Identifier: BSD-3-Clause
// test, optimised:

// # 9. Self-attention
//
// Until now a decoder asked and a sentence answered. In **self-attention** every word of a sentence asks all words of
// the same sentence. No state is carried from word to word, so all are computed at once. Layers of it with small
// networks between them are a **Transformer** (Vaswani et al. 2017). Ours sorts: it reads digits, and writes them in
// order.
//
//     5 2 9 0 7 3 = 0 2 3 5 7 9
//
// Which digit comes next depends on all of them, and on what has been written.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/multi_head.hpp>
#include <heed/nn/feed_forward.hpp>
#include <heed/nn/layer_norm.hpp>
#include <heed/nn/positions.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/losses.hpp>
#include <heed/papers/vaswani2017.hpp>
#include <heed/train/adam.hpp>

#include "course.hpp"
#include "drawing.hpp"

using namespace heed;

// ## The model, on one page
//
// **Heads** are several attentions side by side, each with projections of its own, as queries, keys and values:
//
//     head_i = softmax(Q_i K_iᵀ / √d) V_i,  Q_i = x W_Qi,  K_i = x W_Ki,  V_i = x W_Vi
//     MultiHead(x) = [head_1; head_2] W_O
//
// A layer has two parts: heads, and a small network at each position. What a part computes is added to its input (a
// **residual**): a layer changes x a little, and gradients pass by. A **layer norm** before each part gives the numbers
// of each position mean 0 and deviation 1.
//
//     x ← x + MultiHead(norm(x)),   x ← x + W_2 relu(W_1 norm(x))
//
// The model predicts the next symbol at every position at once. So no position may see a later one, where its answer
// stands: the **mask** `causal{}` gives later positions the weight 0.

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

// Attention compares contents, and does not know where they stand. So each symbol's vector gets a pattern of its
// **position** p added: sin(p / 10000^(k/D)) for even k, and the cosine of the same for the next k.

constexpr std::size_t D = 32, equals = 10, symbols = 11;

template <class Matrix, class Layer, class Norm>
struct transformer {
    Matrix E;  // [11,D]: the symbols
    Layer first, second;
    Norm last;
    Matrix W;  // [D,11]

    auto embedded(const word_ids& given) const { return ops::swap_axes(ops::lookup(E, given)); }  // [S,B] -> [B,S,D]
    auto scores(const word_ids& given) const                                                      // -> [S,B,11]
    {
        const auto x = nn::sinusoidal_positions{}(embedded(given));
        return ops::linear(ops::swap_axes(last(second(first(x)))), W);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return ::transformer{visit("E", self.E), visit("first", self.first), visit("second", self.second),
                             visit("last", self.last), visit("W", self.W)};
    }
};
template <class Matrix, class Layer, class Norm>
transformer(Matrix, Layer, Layer, Norm, Matrix) -> transformer<Matrix, Layer, Norm>;

auto make_transformer(random_source& random)
{
    const auto make_layer = [&] {
        const auto norm = nn::make_layer_norm<float>(D);
        return layer{norm, norm, papers::vaswani2017::make_multi_head<float>(random, {.model = D, .heads = 2}),
                     nn::make_feed_forward<float>(random, D, 4 * D, ops::relu)};
    };
    auto E = nn::gaussian<float>(random, symbols, D, 1.0);
    auto first = make_layer(), second = make_layer();
    return transformer{E, first, second, nn::make_layer_norm<float>(D), nn::glorot<float>(random, D, symbols)};
}

// ## What heads cannot tell, and may not see
//
// Two facts that hold for all weights, so we look at a model that has learned nothing. Without positions, 5 2 9 and 9 2
// 5 are the same to a head: the answer for 5 is the same in both. And with the mask, the answer for 5 2 cannot depend
// on what follows.

word_ids row(const std::vector<std::uint32_t>& symbols_of_it)
{
    word_ids one(symbols_of_it.size(), 1);
    one.ids = symbols_of_it;
    return one;
}

double difference(const auto& x, std::size_t s, const auto& y, std::size_t t)  // of two positions, [1,S,D]
{
    double most = 0;
    for (std::size_t k = 0; k < D; ++k) most = std::max(most, std::abs(double(x(0, s, k)) - double(y(0, t, k))));
    return most;
}

void look(const auto& model)
{
    const auto ask = [&](auto x, auto... mask) { return model.first.heads(model.first.heads.on(x), x, mask...); };
    const auto x = model.embedded(row({5, 2, 9})), turned = model.embedded(row({9, 2, 5}));
    const nn::sinusoidal_positions place;
    course::holds("without positions, 5 gets the same answer in both", difference(ask(x), 0, ask(turned), 2) < 1e-5);
    course::holds("with positions, it does not", difference(ask(place(x)), 0, ask(place(turned)), 2) > 1e-3);
    const auto other = model.embedded(row({5, 2, 0}));
    course::holds("with the mask, 2 does not see what follows",
                  difference(ask(x, causal{}), 1, ask(other, causal{}), 1) == 0);
    course::holds("without, it does", difference(ask(x), 1, ask(other), 1) > 1e-3);
}

// ## Learning
//
// N digits, drawn without repetition: the first N of ten that are shuffled. The loss counts the sorted ones only.

constexpr std::size_t N = 6;

struct batch {
    word_ids given{2 * N, 64};  // N digits, =, and N - 1 digits in order
    ops::expected_words<float> expected{word_ids(2 * N, 64), std::vector<float>(2 * N * 64)};

    explicit batch(std::uint64_t stream)
    {
        for (std::size_t b = 0; b < 64; ++b) {
            std::vector<std::uint32_t> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
            for (std::size_t i = 0; i < N; ++i) std::swap(all[i], all[i + below(10 - i, stream, b * N + i)]);
            for (std::size_t i = 0; i < N; ++i) given(i, b) = all[i];
            std::sort(all.begin(), all.begin() + N);
            given(N, b) = equals;
            for (std::size_t i = 0; i < N; ++i) {
                if (i + 1 < N) given(N + 1 + i, b) = all[i];
                expected.words(N + i, b) = all[i];
                expected.weights[(N + i) * 64 + b] = 1.0f / (64 * N);
            }
        }
    }
};

/// What the model writes behind the N digits and the = of sentence b, with what it reads at last.
std::vector<std::uint32_t> sorted(const auto& model, const batch& some, std::size_t b)
{
    std::vector<std::uint32_t> all;
    for (std::size_t s = 0; s <= N; ++s) all.push_back(some.given(s, b));
    for (std::size_t i = 0; i < N; ++i) {
        const auto scores = model.scores(row(all));  // of all positions; the last one counts
        const float* const p = &scores(all.size() - 1, 0, 0);
        all.push_back(static_cast<std::uint32_t>(std::max_element(p, p + symbols) - p));
    }
    return all;
}

int main(int argc, char** argv)
{
    random_source random{9};
    auto model = make_transformer(random);
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
    const batch test(random.next_stream());
    std::size_t right = 0;
    for (std::size_t b = 0; b < 64; ++b) {
        const auto all = sorted(model, test, b);
        right += std::is_sorted(all.begin() + N + 1, all.end()) &&
                         std::is_permutation(all.begin(), all.begin() + N, all.begin() + N + 1)
                     ? 1u
                     : 0u;
    }
    std::printf("%zu\n", right);
    course::holds("of 64 lists that it has not seen, 58 are sorted without a fault", right >= 58);

    // What the heads of the second layer saw, asked position by position.
    auto all = sorted(model, test, 0);
    all.pop_back();
    const auto x = model.second.before_heads(model.first(nn::sinusoidal_positions{}(model.embedded(row(all)))));
    const auto memory = model.second.heads.on(x);
    std::vector<float> weights[2];
    std::vector<std::string> columns, rows;
    for (std::size_t s = 0; s < 2 * N; ++s) {
        columns.push_back(all[s] == equals ? "=" : std::to_string(all[s]));
        const auto seen =
            model.second.heads.step(memory, ops::step_of(x, s), model.second.heads.start(memory), lengths{s + 1});
        if (s < N) continue;
        rows.push_back(columns.back());
        for (std::size_t head = 0; head < 2; ++head)
            for (std::size_t t = 0; t < 2 * N; ++t) weights[head].push_back(seen.weights(0, head, t));
    }
    const course::drawing draw(argc, argv);
    draw("09_head_1", {weights[0], columns, rows, {}, "head 1"});
    draw("09_head_2", {weights[1], columns, rows, {}, "head 2"});
}
