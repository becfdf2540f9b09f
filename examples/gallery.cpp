// SPDX-License-Identifier: BSD-3-Clause
//
// gallery: one picture of each mechanism's weights, for docs/mechanisms.
//
// Nothing is trained. There is one small sentence pair, with "the" twice. Annotations and queries encode a word and the
// half of the sentence it is in; parameters are set manually so that a score is high if both agree. The pictures show
// the weights that the mechanisms compute. The lines between `section` and `end` are quoted in docs/mechanisms.
//
//     gallery --out docs/pictures/mechanisms
//
// test: --out pictures

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/heed.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/nn/coverage_gru.hpp>
#include <heed/nn/gru.hpp>
#include <heed/papers.hpp>
#include <heed_kit/view/svg.hpp>

using namespace heed;

namespace {

// ---- the example

enum word : std::size_t { the, cat, saw, dog, stop };
constexpr std::size_t words = 5, places = 6;
constexpr std::size_t first_half = 5, second_half = 6, one = 7, D = 8;  // features of annotations and queries
constexpr std::size_t A = 7;                                            // hidden units: one for each word and half

using sentence = std::vector<word>;
const sentence source{the, cat, saw, the, dog, stop};

std::vector<std::string> spelled(const sentence& text)
{
    const std::vector<std::string> names{"the", "cat", "saw", "dog", "."};
    std::vector<std::string> all;
    for (const word w : text) all.push_back(names[w]);
    return all;
}

/// The words that a decoder looks for at each step, and the words that it then writes.
struct questions {
    sentence wanted;
    std::vector<std::string> target;
};
const questions fluent{source, {"die", "Katze", "sah", "den", "Hund", "."}};
/// A decoder that repeats itself.
const questions stuck{{the, cat, saw, saw, dog, stop}, {"die", "Katze", "sah", "sah", "Hund", "."}};

array<float, 2> matrix(std::size_t rows, std::size_t columns,
                       const std::vector<std::tuple<std::size_t, std::size_t, float>>& entries)
{
    auto m = filled<float, 2>({rows, columns}, 0.0f);
    for (const auto& [i, j, x] : entries) m(i, j) = x;
    return m;
}
array<float, 1> vector(std::size_t size, const std::vector<std::pair<std::size_t, float>>& entries)
{
    auto v = filled<float, 1>({size}, 0.0f);
    for (const auto& [i, x] : entries) v(i) = x;
    return v;
}
array<float, 2> diagonal(std::size_t size, float value)
{
    auto m = filled<float, 2>({size, size}, 0.0f);
    for (std::size_t i = 0; i < size; ++i) m(i, i) = value;
    return m;
}

/// The annotations of a sentence, [1,T,D]; those of the words to find serve as queries.
array<float, 3> features(const sentence& text)
{
    auto h = filled<float, 3>({1, text.size(), D}, 0.0f);
    for (std::size_t t = 0; t < text.size(); ++t) {
        h(0, t, text[t]) = 2;
        h(0, t, 2 * t < text.size() ? first_half : second_half) = 1;
        h(0, t, one) = 1;
    }
    return h;
}
const auto annotations = features(source);

/// Hidden unit k: tanh(s_k + h_k - 3) for a word, tanh(2 s_k + 2 h_k - 3) for a half.
const auto W = [] {
    auto m = filled<float, 2>({D, A}, 0.0f);
    for (std::size_t k = 0; k < A; ++k) m(k, k) = k < words ? 1.0f : 2.0f, m(one, k) = -3;
    return m;
}();
const auto U = [] {
    auto m = filled<float, 2>({D, A}, 0.0f);
    for (std::size_t k = 0; k < A; ++k) m(k, k) = k < words ? 1.0f : 2.0f;
    return m;
}();
const auto v = [] {
    auto x = filled<float, 1>({A}, 3.0f);
    x(first_half) = x(second_half) = 0.8f;
    return x;
}();

/// x in column k of one row, for the hidden unit of each word.
array<float, 2> on_words(std::size_t rows, std::size_t row, float x)
{
    auto m = filled<float, 2>({rows, A}, 0.0f);
    for (std::size_t k = 0; k < words; ++k) m(row, k) = x;
    return m;
}

// ---- drawing

struct picture {
    std::string title;
    std::vector<float> weights;  // [S,T]
    std::vector<std::string> columns = spelled(source), rows = fluent.target;
};

constexpr double across = 800;  // pixels: about the width of the text of a page; compared pictures are side by side

struct gallery {
    std::filesystem::path directory;
    std::size_t largest = 0;

    void draw(const std::string& name, const std::vector<picture>& pictures)
    {
        std::vector<view::alignment> all;
        for (const picture& p : pictures) all.push_back({p.weights, p.columns, p.rows, {}, p.title});
        const std::string svg = view::svg(all, across);
        io::write_file(directory / (name + ".svg"), svg);
        largest = std::max(largest, svg.size());
        fmt::print("{:<20} {:>6} bytes\n", name, svg.size());
    }
};

/// The query of step s.
auto ask(const questions& what, std::size_t s) { return ops::step_of(features(what.wanted), s); }
/// As above with the previous target word, one-hot.
auto ask_with_word(const questions& what, std::size_t s)
{
    return state_and_word{ask(what, s), matrix(1, places, {{0, s, 1.0f}})};
}

/// The mean of the weights per dimension or group.
constexpr std::size_t mean = static_cast<std::size_t>(-1);

void add_row(std::vector<float>& rows, const array<float, 2>& weights, std::size_t)
{
    rows.insert(rows.end(), weights.begin(), weights.end());
}
void add_row(std::vector<float>& rows, const array<float, 3>& weights, std::size_t which)
{
    const auto [B, T, N] = weights.shape();
    for (std::size_t t = 0; t < T; ++t) {
        float sum = 0;
        for (std::size_t n = 0; n < N; ++n) sum += weights(0, t, n);
        rows.push_back(which == mean ? sum / static_cast<float>(N) : weights(0, t, which));
    }
}

/// The weights of every step, [S,T].
std::vector<float> look(const auto& attend, const auto& memory, auto state, std::size_t steps, const auto& query,
                        std::size_t which = mean)
{
    std::vector<float> rows;
    for (std::size_t s = 0; s < steps; ++s) {
        auto [context, weights, next] = attend.step(memory, query(s), state);
        add_row(rows, weights, which);
        state = next;
    }
    return rows;
}
std::vector<float> look(const auto& attend, const questions& what = fluent, std::size_t which = mean)
{
    const auto memory = attend.on(annotations);
    return look(
        attend, memory, attend.start(memory), what.wanted.size(), [&what](std::size_t s) { return ask(what, s); },
        which);
}
std::vector<float> look_with_word(const auto& attend, const questions& what = fluent)
{
    const auto memory = attend.on(annotations);
    return look(attend, memory, attend.start(memory), what.wanted.size(),
                [&what](std::size_t s) { return ask_with_word(what, s); });
}

/// The effective weights of the context: one-hot values recover them from the context.
std::vector<float> look_through(const auto& attend)
{
    auto values = filled<float, 3>({1, places, places}, 0.0f);
    for (std::size_t t = 0; t < places; ++t) values(0, t, t) = 1;
    const auto memory = attend.on(annotations, values, {places});
    auto state = attend.start(memory);
    std::vector<float> rows;
    for (std::size_t s = 0; s < places; ++s) {
        const auto [context, weights, next] = attend.step(memory, ask(fluent, s), state);
        rows.insert(rows.end(), context.begin(), context.end());
        state = next;
    }
    return rows;
}

// ---- scores

void additive(gallery& to)
{
    // section: additive
    attention attend{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    // end
    to.draw("additive", {{"additive", look(attend)}});
}

void multiplicative(gallery& to)
{
    // The features of queries are ordered differently from those of annotations; W_a maps one to the other.
    const auto mixed = [](std::size_t s) {
        auto q = ask(fluent, s);
        std::rotate(q.begin(), q.begin() + 1, q.begin() + words);
        return q;
    };
    auto W_a = diagonal(D, 1.3f);
    for (std::size_t k = 0; k < words; ++k) W_a(k, k) = 0, W_a(k, (k + 1) % words) = 1.3f;
    // section: multiplicative
    attention dot{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    attention general{score::general{W_a}, normalize::softmax{}, combine::weighted_sum{}};
    // end
    const auto looked = [&mixed](const auto& attend) {
        const auto memory = attend.on(annotations);
        return look(attend, memory, attend.start(memory), places, mixed);
    };
    to.draw(
        "multiplicative",
        {{"dot, one space", look(dot)}, {"dot, two spaces", looked(dot)}, {"general, two spaces", looked(general)}});
}

void location(gallery& to)
{
    auto W_a = filled<float, 2>({D, places}, 0.0f);
    for (std::size_t t = 0; t < places; ++t) W_a(source[t], t) = 1, W_a(t < 3 ? first_half : second_half, t) = 3;
    // section: location
    attention attend{score::location{W_a}, normalize::softmax{}, combine::weighted_sum{}};
    // end
    const sentence other{the, dog, saw, the, cat, stop};
    const auto memory = attend.on(features(other));
    const auto weights =
        look(attend, memory, attend.start(memory), places, [](std::size_t s) { return ask(fluent, s); });
    to.draw("location", {{"location", look(attend)}, {"another sentence", weights, spelled(other)}});
}

void similarity(gallery& to)
{
    // section: similarity
    attention cosine{score::cosine{8}, normalize::softmax{}, combine::weighted_sum{}};
    attention match{score::match{}, normalize::temperature{0.15}, combine::weighted_sum{}};
    // end
    to.draw("similarity", {{"cosine, scale 8", look(cosine)}, {"match, temperature 0.15", look(match)}});
}

void multi_head_(gallery& to)
{
    // Head 1 reads the words, head 2 the halves.
    auto W_Q = filled<float, 2>({D, 2 * words}, 0.0f), W_K = W_Q;
    for (std::size_t k = 0; k < words; ++k) W_Q(k, k) = W_K(k, k) = 1.5f;
    for (const std::size_t k : {first_half, second_half}) W_Q(k, k) = W_K(k, k) = 2.5f;
    const auto W_V = matrix(D, 8, {{the, 0, 1.0f}}), W_O = diagonal(D, 1);
    // section: multi-head
    attention head{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    multi_head attend{std::vector{head, head}, W_Q, W_K, W_V, W_O};
    // end
    std::vector<float> heads[2];
    const auto memory = attend.on(annotations);
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < places; ++s) {
        const auto [context, weights, next] = attend.step(memory, ask(fluent, s), state);
        for (std::size_t i = 0; i < 2; ++i) add_row(heads[i], ops::step_of(weights, i), mean);
        state = next;
    }
    to.draw("multi-head", {{"head 1", heads[0]}, {"head 2", heads[1]}});
}

void head_gates(gallery& to)
{
    auto W_Q = filled<float, 2>({D, 2 * words}, 0.0f), W_K = W_Q;  // both heads read the words
    for (std::size_t k = 0; k < words; ++k) W_Q(k, k) = W_Q(k, words + k) = W_K(k, k) = W_K(k, words + k) = 1.5f;
    const auto W_V = matrix(D, 8, {{the, 0, 1.0f}}), W_O = diagonal(D, 1);
    auto W_g = filled<float, 2>({D, 2}, 0.0f);
    for (const std::size_t k : {the, cat, saw, dog, stop})
        W_g(k, k == the || k == stop ? 1 : 0) = 2, W_g(k, k == the || k == stop ? 0 : 1) = -1;
    // section: head-gates
    attention head{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    multi_head attend{std::vector{head, head}, W_Q, W_K, W_V, W_O, per_head::gated{W_g}};
    // end
    std::vector<float> gated[2];
    const auto memory = attend.on(annotations);
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < places; ++s) {
        const auto [context, weights, next] = attend.step(memory, ask(fluent, s), state);
        const auto gates = ops::sigmoid(ops::linear(ask(fluent, s), W_g));
        for (std::size_t i = 0; i < 2; ++i)
            add_row(gated[i], ops::scale(ops::step_of(weights, i), static_cast<double>(gates(0, i))), mean);
        state = next;
    }
    to.draw("head-gates", {{"head 1 times its gate", gated[0]}, {"head 2 times its gate", gated[1]}});
}

void talking_heads_(gallery& to)
{
    auto W_Q = filled<float, 2>({D, 2 * words}, 0.0f), W_K = W_Q;  // head 1 reads the words, head 2 the halves
    for (std::size_t k = 0; k < words; ++k) W_Q(k, k) = W_K(k, k) = 1.5f;
    for (const std::size_t k : {first_half, second_half}) W_Q(k, k) = W_K(k, k) = 2.5f;
    const auto W_V = matrix(D, 8, {{the, 0, 1.0f}}), W_O = diagonal(D, 1);
    const auto P_l = matrix(2, 2, {{0, 0, 1.0f}, {1, 0, 0.8f}, {1, 1, 1.0f}}), P_w = diagonal(2, 1);
    // section: talking-heads
    attention head{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    multi_head alone{std::vector{head, head}, W_Q, W_K, W_V, W_O};
    talking_heads talking{alone, P_l, P_w};
    // end
    std::vector<float> first[2];
    const auto memory = alone.on(annotations);
    const auto state = alone.start(memory);
    for (std::size_t s = 0; s < places; ++s) {
        add_row(first[0], ops::step_of(alone.step(memory, ask(fluent, s), state).weights, 0), mean);
        add_row(first[1], ops::step_of(talking.step(memory, ask(fluent, s), state).weights, 0), mean);
    }
    to.draw("talking-heads", {{"head 1 alone", first[0]}, {"head 1 talking", first[1]}});
}

void differential(gallery& to)
{
    // Both heads of the pair see the full stop, independent of the query; the first also reads the words.
    constexpr std::size_t K = words + 1;
    auto W_Q = filled<float, 2>({D, 2 * K}, 0.0f), W_K = W_Q;
    for (std::size_t k = 0; k < words; ++k) W_Q(k, k) = W_K(k, k) = 1.4f;
    for (const std::size_t h : {0u, 1u}) W_Q(one, h * K + words) = 2.5f, W_K(stop, h * K + words) = 1.6f;
    const auto W_V = matrix(D, 4, {{the, 0, 1.0f}}), W_O = matrix(4, D, {});
    const auto q1 = vector(2, {}), k1 = q1, q2 = q1, k2 = q1, gain = vector(4, {{0, 1.0f}});
    // section: differential
    attention head{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    per_head::differential pairs{q1, k1, q2, k2, gain, 0.5};
    multi_head attend{std::vector{head, head}, W_Q, W_K, W_V, W_O, pairs};
    // end
    std::vector<float> maps[3];
    const auto memory = attend.on(annotations);
    const auto state = attend.start(memory);
    for (std::size_t s = 0; s < places; ++s) {
        const auto weights = attend.step(memory, ask(fluent, s), state).weights;
        for (std::size_t i = 0; i < 2; ++i) add_row(maps[i], ops::step_of(weights, i), mean);
        add_row(maps[2], ops::relu(ops::step_of(pairs.weights(weights), 0)), mean);
    }
    to.draw("differential", {{"first", maps[0]}, {"second", maps[1]}, {"first - second / 2", maps[2]}});
}

void latent_heads_(gallery& to)
{
    // Head 1 reads the words, head 2 has only positions.
    const auto W_DKV = [] {
        auto m = filled<float, 2>({D, words}, 0.0f);
        for (std::size_t k = 0; k < words; ++k) m(k, k) = 1;
        return m;
    }();
    auto W_Q = filled<float, 2>({D, 2 * words}, 0.0f), W_UK = filled<float, 2>({2 * words, words}, 0.0f);
    for (std::size_t k = 0; k < words; ++k) W_Q(k, k) = 2, W_UK(k, k) = 1.2f;
    const auto W_QR = matrix(D, 4, {{one, 2, 5.0f}}), W_KR = matrix(D, 2, {{one, 0, 1.0f}});
    const auto W_UV = matrix(2 * words, 4, {{0, 0, 1.0f}}), W_O = diagonal(D, 1);
    // section: latent-heads
    latent_heads attend{2, W_Q, W_QR, W_DKV, W_KR, W_UK, W_UV, W_O};
    // end
    std::vector<float> heads[2];
    const auto memory = attend.on(annotations);
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < places; ++s) {
        const auto [context, weights, next] = attend.step(memory, ask(fluent, s), state);
        for (std::size_t i = 0; i < 2; ++i) add_row(heads[i], ops::step_of(weights, i), mean);
        state = next;
    }
    to.draw("latent-heads", {{"head 1", heads[0]}, {"head 2", heads[1]}});
}

void multi_hop_(gallery& to)
{
    // The state of the decoder encodes the half; the previous word determines the next word.
    const auto W_d = diagonal(D, 1);
    const auto b = vector(D, {});
    // section: multi-hop
    attention hop{score::conv_s2s{W_d, b}, normalize::softmax{}, combine::weighted_sum{}};
    multi_hop attend{std::vector{hop, hop}};
    // end
    std::vector<float> hops[2];
    const auto memory = attend.on(annotations);
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < places; ++s) {
        auto half = ask(fluent, s), word = half;
        for (std::size_t k = 0; k < D; ++k) (k < words ? half : word)(0, k) = 0;
        for (std::size_t k = 0; k < words; ++k) word(0, k) /= 2;
        const auto answer = attend.step(memory, state_and_word{half, word}, state);
        for (std::size_t i = 0; i < 2; ++i) add_row(hops[i], ops::step_of(answer.weights, i), mean);
        state = answer.state;
    }
    to.draw("multi-hop", {{"first hop", hops[0]}, {"second hop", hops[1]}});
}

void with_word(gallery& to)
{
    // The state encodes only the half; Y encodes which word follows the previous target word.
    auto Y = filled<float, 2>({places, A}, 0.0f);
    for (std::size_t t = 0; t < places; ++t) Y(t, source[t]) = 2;
    // section: with-word
    attention attend{score::with_word{score::additive{W, U, v}, Y}, normalize::softmax{}, combine::weighted_sum{}};
    // end
    const attention without{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto half = [](std::size_t s) {
        auto q = ask_with_word(fluent, s);
        for (std::size_t k = 0; k < words; ++k) q.state(0, k) = 0;
        return q;
    };
    const auto memory = attend.on(annotations), other = without.on(annotations);
    to.draw("with-word", {{"state alone", look(without, other, without.start(other), places,
                                               [&half](std::size_t s) { return half(s).state; })},
                          {"state and previous word", look(attend, memory, attend.start(memory), places, half)}});
}

void per_dimension(gallery& to)
{
    auto V = filled<float, 2>({A, D}, 0.0f);
    for (std::size_t k = 0; k < A; ++k) {
        for (std::size_t d = 0; d < A; ++d) V(k, d) = (k < words) == (d < words) ? 5.0f : 0.0f;
    }
    // section: per-dimension
    attention attend{score::additive_per_dimension{W, U, V}, normalize::softmax{}, combine::elementwise_sum{}};
    // end
    to.draw("per-dimension", {{"mean over dimensions", look(attend)},
                              {"a dimension of words", look(attend, fluent, cat)},
                              {"a dimension of halves", look(attend, fluent, first_half)}});
}

void grouped(gallery& to)
{
    auto V = filled<float, 2>({A, 2}, 0.0f);
    for (std::size_t k = 0; k < A; ++k) V(k, k < words ? 0 : 1) = 3;
    // section: grouped
    attention attend{score::additive_grouped{W, U, V}, normalize::softmax{}, combine::grouped_sum{}};
    // end
    to.draw("grouped", {{"group 1", look(attend, fluent, 0)}, {"group 2", look(attend, fluent, 1)}});
}

// ---- scores with memory

void coverage(gallery& to)
{
    // One number per word. Its gate opens where the weight is high: z = σ(4 - 8α), c̃ = tanh(5α).
    auto cell_W = filled<float, 2>({places, 3}, 0.0f);
    for (std::size_t t = 0; t < places; ++t) cell_W(t, 0) = 4;
    const nn::coverage_gru cell{cell_W, vector(3, {{0, -8.0f}, {2, 5.0f}}), matrix(1, 3, {})};
    const auto C = on_words(1, 0, -1.5f);
    // section: coverage
    attention attend{score::with_coverage{score::additive{W, U, v}, C, cell}, normalize::softmax{},
                     combine::weighted_sum{}};
    // end
    const attention without{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    to.draw("coverage", {{"without", look(without, stuck), spelled(source), stuck.target},
                         {"coverage", look_with_word(attend, stuck), spelled(source), stuck.target}});
}

void fertility(gallery& to)
{
    const auto v_c = vector(A, {{the, -1.5f}, {cat, -1.5f}, {saw, -1.5f}, {dog, -1.5f}, {stop, -1.5f}});
    const auto U_f = vector(D, {{cat, -0.6f}, {saw, 2.0f}});
    // section: fertility
    attention attend{score::with_fertility{score::additive{W, U, v}, v_c, U_f, 2}, normalize::softmax{},
                     combine::weighted_sum{}};
    // end
    const questions again{{cat, cat, cat, saw, saw, saw}, {"Katze", "Katze", "Katze", "sah", "sah", "sah"}};
    const auto expected = attend.score.fertility(annotations);
    to.draw("fertility",
            {{fmt::format("fertility of cat {:.1f}, of saw {:.1f}", double(expected(0, 1)), double(expected(0, 2))),
              look(attend, again), spelled(source), again.target}});
}

void gated_coverage(gallery& to)
{
    // One number per word. Its gate opens where the weight is high: z = σ(8α - 4), C̃ = tanh(5α).
    const nn::gated_coverage cell{matrix(D, 3, {{one, 0, -4.0f}}), matrix(D, 3, {}), vector(3, {{0, 8.0f}, {2, 5.0f}}),
                                  matrix(1, 2, {}), matrix(1, 1, {})};
    const auto V = on_words(1, 0, -1.5f);
    // section: gated-coverage
    attention attend{score::with_gated_coverage{score::additive{W, U, v}, V, cell}, normalize::softmax{},
                     combine::weighted_sum{}};
    // end
    const auto covered = look(attend, stuck);
    attend.score.cell.W(saw, 0) = -4;  // the unit also reads the annotation: its gate stays closed for this word
    to.draw("gated-coverage", {{"gated coverage", covered, spelled(source), stuck.target},
                               {"\"saw\" shuts the gate", look(attend, stuck), spelled(source), stuck.target}});
}

void location_aware(gallery& to)
{
    const auto F = matrix(1, 3, {{0, 0, 1.0f}});  // the weight of the previous position
    const auto U_f = on_words(1, 0, 0.8f);
    // section: location-aware
    attention attend{score::with_location{score::additive{W, U, v}, F, U_f}, normalize::softmax{},
                     combine::weighted_sum{}};
    // end
    const attention without{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    // Queries that encode the word but not the half.
    const auto word = [](std::size_t s) {
        auto q = ask(fluent, s);
        q(0, first_half) = q(0, second_half) = 0.5f;
        return q;
    };
    const auto looked = [&word](const auto& a) {
        const auto memory = a.on(annotations);
        return look(a, memory, a.start(memory), places, word);
    };
    to.draw("location-aware", {{"without", looked(without)}, {"location-aware", looked(attend)}});
}

void structural_biases(gallery& to)
{
    // Two hidden units that do not depend on the words: 6 tanh(1 + 4 (ψ_j - ψ_t)) - 6 tanh(4 (ψ_j - ψ_t) - 1).
    const auto W_b = matrix(D, 2, {{one, 0, 1.0f}, {one, 1, -1.0f}}), U_b = matrix(D, 2, {});
    const auto v_b = vector(2, {{0, 3.0f}, {1, -3.0f}});
    const auto P = matrix(3, 2, {{0, 0, -4.0f}, {0, 1, -4.0f}, {1, 0, 4.0f}, {1, 1, 4.0f}});
    const auto M = on_words(3, 0, 0.8f);
    // section: structural-biases
    attention positions{score::with_positions{score::additive{W_b, U_b, v_b}, P}, normalize::softmax{},
                        combine::weighted_sum{}};
    attention markov{score::with_neighbors{score::additive{W, U, v}, M}, normalize::softmax{}, combine::weighted_sum{}};
    // end
    to.draw("structural-biases", {{"positions alone", look(positions)}, {"words and neighbors", look(markov)}});
}

void recurrent(gallery& to)
{
    // The unit weakly copies the context; W_r encodes the following word.
    nn::gru cell{filled<float, 2>({places + D, 3 * D}, 0.0f), filled<float, 1>({3 * D}, 0.0f),
                 filled<float, 2>({D, 2 * D}, 0.0f), filled<float, 2>({D, D}, 0.0f)};
    for (std::size_t k = 0; k < D; ++k) cell.W(places + k, 2 * D + k) = 1, cell.b(k) = 4;
    auto W_r = filled<float, 2>({D, A}, 0.0f);
    for (const auto& [before, after] : {std::pair{the, cat}, {the, dog}, {cat, saw}, {saw, the}, {dog, stop}}) {
        W_r(before, after) = 2;
    }
    // section: recurrent
    attention attend{score::with_recurrence{score::additive{W, U, v}, W_r, cell}, normalize::softmax{},
                     combine::weighted_sum{}};
    // end
    // After the first step, the queries encode only the half.
    const auto half = [](std::size_t s) {
        auto q = ask_with_word(fluent, s);
        for (std::size_t k = 0; k < words && s > 0; ++k) q.state(0, k) = 0;
        return q;
    };
    const attention without{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations), other = without.on(annotations);
    to.draw("recurrent", {{"without", look(without, other, without.start(other), places,
                                           [&half](std::size_t s) { return half(s).state; })},
                          {"recurrent", look(attend, memory, attend.start(memory), places, half)}});
}

// ---- normalizers

const attention plain{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};

void temporal(gallery& to)
{
    // section: temporal
    attention attend{score::additive{W, U, v}, normalize::temporal{}, combine::weighted_sum{}};
    // end
    to.draw("temporal", {{"softmax", look(plain, stuck), spelled(source), stuck.target},
                         {"temporal", look(attend, stuck), spelled(source), stuck.target}});
}

void temporal_family(gallery& to)
{
    const auto w = vector(1, {{0, -3.0f}});
    // section: temporal-family
    attention last_step{score::additive{W, U, v}, normalize::recent_temporal{1}, combine::weighted_sum{}};
    attention half_strength{score::additive{W, U, v}, normalize::decayed_temporal{0.5, 0.1}, combine::weighted_sum{}};
    attention added{score::additive{W, U, v}, normalize::learned_temporal{w}, combine::weighted_sum{}};
    // end
    to.draw("temporal-family", {{"the last step only", look(last_step, stuck), spelled(source), stuck.target},
                                {"half strength, decayed", look(half_strength, stuck), spelled(source), stuck.target},
                                {"added, w = -3", look(added, stuck), spelled(source), stuck.target}});
}

void document_memory(gallery& to)
{
    const attention attend{score::additive{W, U, v}, normalize::temporal{}, combine::weighted_sum{}};
    const sentence second{the, dog, saw, the, cat, stop};
    const auto ids = [](const sentence& text) {
        word_ids all(text.size(), 1);
        for (std::size_t t = 0; t < text.size(); ++t) all(t, 0) = static_cast<std::uint32_t>(text[t]);
        return all;
    };
    const auto first_words = ids(source), second_words = ids(second);
    // Everything in the first sentence except the dog is translated.
    const questions without_dog{{the, cat, saw, the, the, stop}, {}};
    const auto memory = attend.on(annotations);
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < places; ++s) state = attend.step(memory, ask(without_dog, s), state).state;
    // clang-format off
    // section: document-memory
    normalize::history_of_words<float> document(1);          // one document
    document.keep(first_words, {places}, state.normalize);   // after its first sentence
    auto memory_of_second = attend.on(features(second));     // before its second one
    auto before = attend.start(memory_of_second);
    before.normalize = document.recall(second_words, {places});
    // end
    // clang-format on
    // A query for a noun, either one, in either half.
    const auto noun = [](std::size_t) {
        auto q = ask(fluent, 0);
        q(0, the) = 0;
        q(0, cat) = q(0, dog) = 2;
        q(0, first_half) = q(0, second_half) = 0.5f;
        return q;
    };
    const auto first_step = [&](const auto& first) { return look(attend, memory_of_second, first, 1, noun); };
    to.draw("document-memory",
            {{"a new document", first_step(attend.start(memory_of_second)), spelled(second), {"?"}},
             {"after a sentence that left out the dog", first_step(before), spelled(second), {"?"}}});
}

void local(gallery& to)
{
    const auto W_p = matrix(
        D, 1, {{first_half, 0, -0.5f}, {second_half, 0, 0.5f}, {the, 0, -0.2f}, {saw, 0, 0.2f}, {stop, 0, 0.2f}});
    const auto v_p = vector(1, {{0, 2.5f}});
    // section: local
    attention local_m{score::additive{W, U, v}, normalize::local_m{1}, combine::weighted_sum{}};
    attention local_p{score::additive{W, U, v}, normalize::local_p{W_p, v_p, 2}, combine::weighted_sum{}};
    // end
    to.draw("local", {{"local-m, reach 1", look(local_m)}, {"local-p, reach 2", look(local_p)}});
}

void local_temporal(gallery& to)
{
    // section: local-temporal
    normalize::local_m everywhere{1, normalize::temporal{}};
    normalize::local_m there{1, normalize::temporal{}, normalize::history::in_window{}};
    attention all{score::additive{W, U, v}, everywhere, combine::weighted_sum{}};
    attention in_window{score::additive{W, U, v}, there, combine::weighted_sum{}};
    // end
    to.draw("local-temporal", {{"history of all positions", look(all, stuck), spelled(source), stuck.target},
                               {"history in the window", look(in_window, stuck), spelled(source), stuck.target}});
}

void hard(gallery& to)
{
    // section: hard
    attention drawn{score::additive{W, U, v}, normalize::hard{10}, combine::weighted_sum{}};
    attention relaxed{score::additive{W, U, v}, normalize::gumbel{10, 0.5, false}, combine::weighted_sum{}};
    attention greedy{score::additive{W, U, v}, normalize::argmax{}, combine::weighted_sum{}};
    // end
    to.draw("hard", {{"hard, drawn", look(drawn)}, {"gumbel, soft weights", look(relaxed)}, {"argmax", look(greedy)}});
}

void sparse(gallery& to)
{
    const auto W_a = diagonal(D, 0.4f);
    // section: sparse
    attention softmax{score::general{W_a}, normalize::softmax{}, combine::weighted_sum{}};
    attention entmax15{score::general{W_a}, normalize::entmax15{}, combine::weighted_sum{}};
    attention sparsemax{score::general{W_a}, normalize::sparsemax{}, combine::weighted_sum{}};
    attention top_2{score::general{W_a}, normalize::top_k{2}, combine::weighted_sum{}};
    // end
    to.draw("sparse", {{"softmax", look(softmax)},
                       {"entmax 1.5", look(entmax15)},
                       {"sparsemax", look(sparsemax)},
                       {"top 2", look(top_2)}});
}

void sink(gallery& to)
{
    const auto look_at_all = [](const auto& attend) {
        const auto memory = attend.on(annotations);
        return look(attend, memory, attend.start(memory), places, [](std::size_t s) {
            return s == 2 ? filled<float, 2>({1, D}, 0.0f) : ask(fluent, s);  // the third query is empty
        });
    };
    // section: sink
    attention softmax{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    attention with_sink{score::dot{}, normalize::softmax_with_sink{array<float, 1>{4.0f}}, combine::weighted_sum{}};
    // end
    to.draw("sink", {{"softmax", look_at_all(softmax)}, {"with a sink", look_at_all(with_sink)}});
}

void modified(gallery& to)
{
    auto W_words = diagonal(D, 3.0f);
    W_words(first_half, first_half) = W_words(second_half, second_half) = W_words(one, one) = 0;
    // section: modified
    attention words_alone{score::general{W_words}, normalize::softmax{}, combine::weighted_sum{}};
    attention alibi{
        score::modified{score::general{W_words}, [](auto e, score_index p) { return e - 0.7 * abs(p.query - p.key); }},
        normalize::softmax{}, combine::weighted_sum{}};
    attention capped{score::modified{score::general{W_words}, [](auto e, score_index) { return 2 * tanh(e / 2); }},
                     normalize::softmax{}, combine::weighted_sum{}};
    // end
    to.draw("modified", {{"words alone", look(words_alone)}, {"ALiBi", look(alibi)}, {"soft-cap", look(capped)}});
}

void rotary(gallery& to)
{
    const auto same = filled<float, 3>({1, places, 16}, 1.0f);  // equal words: only positions differ
    const auto look_at_same = [&](const auto& attend) {
        const auto memory = attend.on(same);
        return look(attend, memory, attend.start(memory), places, [&](std::size_t) { return ops::step_of(same, 0); });
    };
    // section: rotary
    attention without{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    attention turned{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}};
    // end
    to.draw("rotary", {{"all words alike", look_at_same(without)}, {"turned by position", look_at_same(turned)}});
}

void relative(gallery& to)
{
    const auto same = filled<float, 3>({1, places, 16}, 1.0f);  // equal words: only distances differ
    const auto distances =
        matrix(16, 5, {{0, 1, 10.0f}, {0, 0, -4.0f}});  // one before is preferred to all earlier positions
    const auto vectors = filled<float, 2>({5, 16}, 0.0f);
    const auto look_at_same = [&](const auto& attend) {
        const auto memory = attend.on(same);
        return look(attend, memory, attend.start(memory), places, [&](std::size_t) { return ops::step_of(same, 0); });
    };
    // section: relative
    attention without{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    attention near{score::relative{score::scaled_dot{}, distances}, normalize::softmax{}, combine::weighted_sum{}};
    attention of_values{score::relative{score::scaled_dot{}, distances}, normalize::softmax{},
                        combine::relative{vectors}};
    // end
    (void)of_values.on(same);
    to.draw("relative", {{"all words alike", look_at_same(without)}, {"compared with distances", look_at_same(near)}});
}

void forgetting(gallery& to)
{
    const auto w = matrix(D, 1, {{saw, 0, -2.0f}});  // nearly closed at "saw"
    const auto b = vector(1, {{0, 2.0f}});
    const auto alike = [&](const auto& attend) {
        const auto memory = attend.on(annotations);
        std::vector<float> rows;
        auto state = attend.start(memory);
        for (std::size_t s = 0; s < places; ++s) {
            auto next = attend.step(memory, filled<float, 2>({1, D}, 0.0f), state, lengths{s + 1});
            add_row(rows, next.weights, mean);
            state = std::move(next.state);
        }
        return rows;
    };
    // section: forgetting
    attention remembers{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    attention forgets{score::forgetting{score::scaled_dot{}, w, b}, normalize::softmax{}, combine::weighted_sum{}};
    // end
    const auto text = spelled(source);
    to.draw("forgetting",
            {{"softmax", alike(remembers), text, text}, {"forgetting at \"saw\"", alike(forgets), text, text}});
}

void gated_decay(gallery& to)
{
    const auto w = matrix(D, 1, {{saw, 0, -3.0f}});  // nearly closed at "saw"
    const auto b = vector(1, {{0, 3.0f}});
    const auto alike = [&](const auto& attend) {
        const auto memory = attend.on(annotations);
        std::vector<float> rows;
        auto state = attend.start(memory);
        for (std::size_t s = 0; s < places; ++s) {
            auto next = attend.step(memory, filled<float, 2>({1, D}, 1.0f), state, lengths{s + 1});
            add_row(rows, next.weights, mean);
            state = std::move(next.state);
        }
        return rows;
    };
    // section: gated_decay
    attention retention{score::kernel{score::elu_plus_one{}}, normalize::ratio{0.8}, combine::weighted_sum{}};
    attention fades{score::gated_decay{score::kernel{score::elu_plus_one{}}, w, b}, normalize::ratio{},
                    combine::weighted_sum{}};
    // end
    const auto text = spelled(source);
    to.draw("gated_decay",
            {{"one decay", alike(retention), text, text}, {"gates, shut at \"saw\"", alike(fades), text, text}});
}

void delta_rule(gallery& to)
{
    const auto w = matrix(D, 1, {});
    const auto b = vector(1, {{0, 3.0f}});                        // β = 0.95
    auto numbered = filled<float, 3>({1, places, places}, 0.0f);  // a context is then the row of its weights
    for (std::size_t t = 0; t < places; ++t) numbered(0, t, t) = 1;
    const auto shares = [&](const auto& attend) {
        const auto contexts = attend(attend.on(annotations, numbered), annotations, causal{});
        return std::vector<float>(contexts.begin(), contexts.end());
    };
    // section: delta_rule
    attention sum{score::cosine{}, normalize::retention{}, combine::weighted_sum{}};
    attention delta{score::cosine{}, normalize::retention{}, combine::delta_rule{w, b}};
    // end
    const auto text = spelled(source);
    to.draw("delta_rule", {{"a sum", shares(sum), text, text}, {"the delta rule", shares(delta), text, text}});
}

void contextual_positions(gallery& to)
{
    // Queries look for "the": the gate is open there and closed elsewhere. Apart from this, only positions are
    // compared.
    auto ask = filled<float, 2>({1, D}, 0.0f);
    ask(0, the) = 16, ask(0, one) = -16;
    const auto distances = matrix(D, 5, {{one, 1, -0.5f}}), positions = matrix(D, 3, {{one, 1, -0.5f}});
    const auto counted = [&](const auto& attend) {
        const auto memory = attend.on(annotations);
        std::vector<float> rows;
        auto state = attend.start(memory);
        for (std::size_t s = 0; s < places; ++s) {
            auto next = attend.step(memory, ask, state, lengths{s + 1});
            add_row(rows, next.weights, mean);
            state = std::move(next.state);
        }
        return rows;
    };
    // section: contextual-positions
    attention relative{score::relative{score::scaled_dot{}, distances}, normalize::softmax{}, combine::weighted_sum{}};
    attention counts{score::contextual_positions{score::scaled_dot{}, positions}, normalize::softmax{},
                     combine::weighted_sum{}};
    // end
    const auto text = spelled(source);
    to.draw("contextual-positions",
            {{"distances", counted(relative), text, text}, {"counts of \"the\"", counted(counts), text, text}});
}

void dynamic_convolution(gallery& to)
{
    const auto w = vector(3, {{0, 1.0f}, {1, 2.0f}, {2, 1.0f}});
    const auto W_k = matrix(D, 3, {{cat, 0, 2.0f}, {dog, 0, 2.0f}, {saw, 1, 2.0f}, {stop, 1, 2.0f}, {the, 2, 2.0f}});
    const auto own = [&](const auto& attend) {  // each word looks for itself
        const auto memory = attend.on(annotations);
        return look(attend, memory, attend.start(memory), places,
                    [&](std::size_t s) { return ops::step_of(annotations, s); });
    };
    // section: dynamic-convolution
    attention lightweight{score::lightweight_convolution{w}, normalize::retention{}, combine::weighted_sum{}};
    attention dynamic{score::dynamic_convolution{W_k}, normalize::retention{}, combine::weighted_sum{}};
    // end
    const auto text = spelled(source);
    to.draw("dynamic-convolution",
            {{"one kernel", own(lightweight), text, text}, {"a kernel for each word", own(dynamic), text, text}});
}

void linear(gallery& to)
{
    random_source drawn{3};
    // section: linear
    attention elu{score::kernel{score::elu_plus_one{}}, normalize::ratio{}, combine::weighted_sum{}};
    attention performer{score::kernel{score::positive_random{nn::gaussian<float>(drawn, D, 1024, 1)}},
                        normalize::ratio{}, combine::weighted_sum{}};
    attention retention{score::scaled_dot{}, normalize::retention{0.8}, combine::weighted_sum{}};
    // end
    to.draw("linear", {{"elu + 1", look(elu)}, {"retention", look(retention)}});
}

void temperature(gallery& to)
{
    // section: temperature
    attention sharp{score::additive{W, U, v}, normalize::temperature{0.5}, combine::weighted_sum{}};
    attention blunt{score::additive{W, U, v}, normalize::temperature{3.0}, combine::weighted_sum{}};
    // end
    to.draw("temperature", {{"temperature 0.5", look(sharp)}, {"temperature 3", look(blunt)}});
}

void sigmoid(gallery& to)
{
    // section: sigmoid
    attention attend{score::dot{}, normalize::sigmoid{-4}, combine::weighted_sum{}};
    // end
    to.draw("sigmoid", {{"sigmoid, bias -4", look(attend)}});
}

void stick_breaking(gallery& to)
{
    // section: stick-breaking
    attention softmax{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    attention stick{score::dot{}, normalize::stick_breaking{}, combine::weighted_sum{}};
    // end
    to.draw("stick-breaking", {{"softmax", look(softmax)}, {"stick breaking", look(stick)}});
}

/// The score is 6 for the requested word: queries encode it, but not the half of the sentence.
const auto same_word = [] {
    auto W_a = diagonal(D, 1.5f);
    W_a(first_half, first_half) = W_a(second_half, second_half) = W_a(one, one) = 0;
    return score::general{W_a};
}();

void monotonic(gallery& to)
{
    // section: monotonic
    attention softmax{same_word, normalize::softmax{}, combine::weighted_sum{}};
    attention monotonic{same_word, normalize::monotonic{array<float, 1>{-3}}, combine::weighted_sum{}};
    attention trained{monotonic.score, normalize::monotonic_hard{monotonic.normalize.r}, monotonic.combine};
    // end
    to.draw("monotonic", {{"softmax", look(softmax)}, {"monotonic", look(monotonic)}, {"hard", look(trained)}});
}

void chunkwise(gallery& to)
{
    const array<float, 1> r{-3}, s{0.2f};
    // section: chunkwise
    attention soft{same_word, normalize::chunkwise{3, s, normalize::monotonic{r}}, combine::weighted_sum{}};
    attention trained{same_word, normalize::chunkwise{3, s, normalize::monotonic_hard{r}}, combine::weighted_sum{}};
    // end
    to.draw("chunkwise", {{"to train", look(soft)}, {"trained", look(trained)}});
}

void gaussian_mixture(gallery& to)
{
    auto M = filled<float, 2>({D, 4}, 0.0f), W_kappa = filled<float, 2>({D, 2}, 0.0f);
    W_kappa(the, 0) = -0.5f;  // "the" moves the first window by less
    const array<float, 1> b{-0.2f, -1.2f, 0.4f, -1.5f}, b_kappa{0.2f, 0.25f};
    // section: gaussian-mixture
    attention attend{score::gaussian_mixture{M, b, W_kappa, b_kappa}, normalize::retention{}, combine::weighted_sum{}};
    // end
    to.draw("gaussian-mixture", {{"two windows", look(attend)}});
}

void weight_dropout(gallery& to)
{
    // section: weight-dropout
    attention attend{score::additive{W, U, v}, normalize::dropout{0.3, 7}, combine::weighted_sum{}};
    // end
    attend.normalize.options.at_inference = true;
    to.draw("weight-dropout", {{"weights", look(attend)}, {"weights after dropout", look_through(attend)}});
}

// ---- combiners

void combiners(gallery& to)
{
    const auto W_b = matrix(D, 1, {{the, 0, -0.5f}, {cat, 0, 1.0f}, {saw, 0, 0.7f}, {dog, 0, 1.0f}, {stop, 0, -1.0f}});
    const auto b = vector(1, {});
    const auto W_c = filled<float, 2>({2 * D, D}, 0.1f);
    // section: combiners
    attention gated{score::additive{W, U, v}, normalize::softmax{}, combine::gated{W_b, b}};
    attention attentional{score::additive{W, U, v}, normalize::softmax{}, combine::attentional{W_c}};
    // end
    to.draw("combiners", {{"weights", look(attentional)}, {"weights times gate", look_through(gated)}});
}

// ---- sentence pairs

void abcnn_(gallery& to)
{
    const sentence other{the, dog, saw, the, cat, stop};
    const std::size_t width = 2, maps = 4;
    random_source random{1};
    const auto W_0 = nn::glorot<float>(random, places, D), W_1 = nn::glorot<float>(random, places, D);
    const auto W_both = nn::glorot<float>(random, width * 2 * D, maps);
    const auto b = nn::zeros<float>(maps);
    // section: abcnn
    abcnn::sentences pair{features(source), {places}, features(other), {places}};
    auto alike = abcnn::match_matrix(pair);  // [B,S,T]
    auto block = papers::yin2016::abcnn3(W_0, W_1, W_both, b, width);
    auto next = block(pair);  // new feature maps of both sentences, for the next block
    // end
    const auto deeper = abcnn::match_matrix(next);
    to.draw("abcnn", {{"match of words", {alike.begin(), alike.end()}, spelled(other), spelled(source)},
                      {"match behind a block", {deeper.begin(), deeper.end()}, spelled(other), spelled(source)}});
}

// ---- penalties

std::string judged(const std::string& name, const std::vector<array<float, 2>>& weights)
{
    const lengths real{places};
    const std::vector<penalty::links> links{{{0, 0}, {1, 1}, {2, 2}, {4, 4}, {5, 5}}};
    // clang-format off
    // section: penalties
    auto once     = penalty::doubly_stochastic(weights, real);        // equal coverage of all source words
    auto not_same = penalty::coverage(weights, real);                 // no repeated attention
    auto forward  = penalty::monotone(weights, real);                 // left to right
    auto as_told  = penalty::guided_alignment(weights, links, real);  // along these links
    // end
    // clang-format on
    const auto number = [](const auto& loss) { return double(*view_of(loss).data); };
    return fmt::format("{}: {:.2f}, {:.2f}, {:.2f}, {:.2f}", name, number(once), number(not_same), number(forward),
                       number(as_told));
}

void penalties(gallery& to)
{
    const auto judge = [](const std::string& name, const auto& attend) {
        const auto memory = attend.on(annotations);
        auto state = attend.start(memory);
        std::vector<array<float, 2>> weights;  // [B,T] of each step
        for (std::size_t s = 0; s < places; ++s) {
            auto answer = attend.step(memory, ask(stuck, s), state);
            weights.push_back(answer.weights);
            state = answer.state;
        }
        return picture{judged(name, weights), look(attend, stuck), spelled(source), stuck.target};
    };
    const attention temporal{score::additive{W, U, v}, normalize::temporal{}, combine::weighted_sum{}};
    to.draw("penalties", {judge("softmax", plain), judge("temporal", temporal)});
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Draw the weights of every attention mechanism on one small example, as docs/mechanisms shows them."};
    std::string out = "docs/pictures/mechanisms";
    app.add_option("--out", out, "the directory for the pictures")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        std::filesystem::create_directories(out);
        gallery to{out};
        for (const auto section : {additive,
                                   multiplicative,
                                   location,
                                   similarity,
                                   multi_head_,
                                   head_gates,
                                   talking_heads_,
                                   differential,
                                   latent_heads_,
                                   multi_hop_,
                                   with_word,
                                   per_dimension,
                                   grouped,
                                   coverage,
                                   gated_coverage,
                                   fertility,
                                   location_aware,
                                   structural_biases,
                                   recurrent,
                                   temporal,
                                   temporal_family,
                                   document_memory,
                                   local,
                                   local_temporal,
                                   hard,
                                   sparse,
                                   sink,
                                   modified,
                                   rotary,
                                   relative,
                                   forgetting,
                                   contextual_positions,
                                   dynamic_convolution,
                                   gated_decay,
                                   delta_rule,
                                   linear,
                                   temperature,
                                   sigmoid,
                                   stick_breaking,
                                   monotonic,
                                   chunkwise,
                                   gaussian_mixture,
                                   weight_dropout,
                                   combiners,
                                   abcnn_,
                                   penalties}) {
            section(to);
        }
        constexpr std::size_t limit = 15000;  // a page shows one picture, which must load quickly
        if (to.largest > limit) {
            fmt::print(stderr, "gallery: a picture has {} bytes, more than {}\n", to.largest, limit);
            return 1;
        }
        return 0;
    } catch (const std::exception& problem) {
        fmt::print(stderr, "gallery: {}\n", problem.what());
        return 1;
    }
}
