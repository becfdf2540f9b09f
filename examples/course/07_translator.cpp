// SPDX-License-Identifier: BSD-3-Clause
// test, optimized:

// # 7. A translator in one file
//
// English number words become German ones: `seven hundred twenty four` is `sieben hundert vier und zwanzig`. German
// says four-and-twenty, so the order changes. The whole translator is in this file.

#include <algorithm>
#include <span>

#include <heed/heed.hpp>
#include <heed/nn/gru.hpp>
#include <heed/seq2seq/batch.hpp>
#include <heed/train/adam.hpp>

#include "../support/number_words.hpp"
#include "course.hpp"
#include "picture.hpp"

using namespace heed;

// ## Words as numbers
//
// A vocabulary gives each word a number. Number 0 ends a sentence, and every translation starts after it.

struct vocabulary {
    std::vector<std::string> words{"<end>"};
    std::vector<std::uint32_t> operator()(const std::vector<std::string>& sentence)
    {
        std::vector<std::uint32_t> ids;
        for (const std::string& word : sentence) {
            ids.push_back(static_cast<std::uint32_t>(std::find(words.begin(), words.end(), word) - words.begin()));
            if (ids.back() == words.size()) words.push_back(word);
        }
        return ids;
    }
};

// ## The model
//
// A **recurrent** cell reads word by word and keeps a state h of H numbers. A GRU has two gates, sigmoids σ: r for the
// state that enters a candidate h̃, z for the share of h̃ in the new state; ⊙ multiplies number by number:
//
//     z = σ(W_z x + U_z h + b_z),   r = σ(W_r x + U_r h + b_r)
//     h̃ = tanh(W_h x + U_h (r ⊙ h) + b_h),   h' = (1 − z) ⊙ h + z ⊙ h̃
//
// The **encoder** reads the sentence in both directions. The two states at a word, side by side, are its annotation:
// they know the words before and after it. The **decoder** is a third GRU, with state s. At each step, s is the query.
// The decoder reads the context c that attention returns, and y, the previous word:
//
//     c = Σ_j α_j h_j,   α = softmax(vᵀ tanh(W s + U h_j))        Bahdanau et al. 2015
//     s' = GRU([y; c], s),   p(word) = softmax([s'; c] W_o + b_o)

template <class Matrix, class Cell, class Attention, class Vector>
struct translator {
    Matrix english, german;  // [V,E]: the vector of each word
    Cell forward, backward;  // E -> H
    Attention attend;        // queries [H]; annotations [2H]
    Cell decoder;            // E + 2H -> H
    Matrix W_o;              // [3H,V]
    Vector b_o;              // [V]

    auto encode(const seq2seq::source_batch& given) const  // the memory, and the decoder's first state
    {
        const std::size_t T = given.words.steps, H = shape_of(backward.U_h)[0];
        const auto x = ops::lookup(english, given.words);                         // [T,B,E]
        const auto to_right = forward.project(x), to_left = backward.project(x);  // W x + b, for all words at once
        const auto zero = constant_like(x, shape_of_rank<2>{given.words.batch, H}, 0.0);
        std::vector<decltype(forward.step(ops::block(to_right, 0), zero))> right(T), left(T);
        for (std::size_t t = 0, u = T - 1; t < T; ++t, --u) {  // padding does not change a state
            right[t] = forward.step(ops::block(to_right, t), t == 0 ? zero : right[t - 1], {&given.real, t});
            left[u] = backward.step(ops::block(to_left, u), t == 0 ? zero : left[u + 1], {&given.real, u});
        }
        const auto h = ops::swap_axes(ops::concat(ops::stack(right), ops::stack(left)));  // [B,T,2H]
        return std::tuple{attend.on(h, given.real), left[0]};
    }

    /// Returns the new state, [s'; c], the weights, and the state of the attention (step 4).
    auto step(const auto& memory, const auto& state, const auto& s, const tensor auto& y) const
    {
        const auto [c, weights, next] = attend.step(memory, s, state);
        const auto after = decoder.step(decoder.project(ops::concat(y, c)), s);
        return std::tuple{after, ops::concat(after, c), weights, next};
    }

    auto loss(const seq2seq::training_batch<float>& given) const  // Σ −log p(right word)
    {
        auto [memory, s] = encode(given.source);
        auto state = attend.start(memory);
        const auto y = ops::lookup(german, given.previous);  // [S,B,E]
        std::vector<decltype(ops::concat(s, s))> readouts;
        for (std::size_t i = 0; i < given.previous.steps; ++i) {
            const auto [after, readout, weights, next] = step(memory, state, s, ops::block(y, i));
            s = after, state = next;
            readouts.push_back(readout);
        }
        return ops::cross_entropy(ops::linear(ops::stack(readouts), W_o, b_o), given.targets);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return ::translator{visit("english", self.english), visit("german", self.german),
                            visit("forward", self.forward), visit("backward", self.backward),
                            visit("attend", self.attend),   visit("decoder", self.decoder),
                            visit("W_o", self.W_o),         visit("b_o", self.b_o)};
    }
};
template <class M, class C, class A, class V>
translator(M, M, C, C, A, C, M, V) -> translator<M, C, A, V>;

// ## The loop
//
// `make_training_batch` builds a batch like that of step 6. The decoder reads the right previous words, not its own
// (**teacher forcing**). The learning rate falls to 0; otherwise, the quality of the final model is a matter of luck.

constexpr std::size_t E = 32, H = 64;
constexpr seq2seq::special_ids marks{.padding = 0, .begin = 0, .end = 0};

auto learn(auto attend, std::span<const numbers::pair> pairs, vocabulary& english, vocabulary& german, int steps)
{
    std::vector<seq2seq::id_sentence> sources, targets;
    for (const auto& pair : pairs) sources.push_back(english(pair.english)), targets.push_back(german(pair.german));
    random_source random{7};
    const auto table = [&](const vocabulary& of) { return nn::glorot<float>(random, of.words.size(), E); };
    const auto cell = [&](std::size_t inputs) { return nn::make_gru<float>(random, inputs, H); };
    auto W_o = nn::glorot<float>(random, 3 * H, german.words.size());
    auto b_o = nn::zeros<float>(german.words.size());
    translator model{table(english), table(german), cell(E), cell(E), attend, cell(E + 2 * H), W_o, b_o};
    ad::tape<float> tape;
    train::adam<float> adam;
    for (int step = 1; step <= steps; ++step) {
        std::vector<const seq2seq::id_sentence*> source(32), target(32);
        for (std::uint64_t i = 0, stream = random.next_stream(); i < 32; ++i) {
            const std::size_t drawn = below(pairs.size(), stream, i);
            source[i] = &sources[drawn], target[i] = &targets[drawn];
        }
        const auto given = seq2seq::make_training_batch<float>(source, target, marks);
        adam.settings.rate = 0.005 * (steps + 1 - step) / steps;
        tape.clear();
        const auto taped = ad::lift(tape, model);
        const auto loss = ops::scale(taped.loss(given), 1.0 / double(given.target_words));
        tape.backward(loss);
        adam.step(model, taped, tape, 1.0);
        if (step % 100 == 0) std::printf("step %3d  loss %.4f\n", step, double(*loss.data()));
    }
    return model;
}

// ## The search
//
// Without right words, **greedy** search takes the most probable word and reads it at the next step, until the end.

auto translate(const auto& model, const numbers::pair& pair, vocabulary& english, vocabulary& german)
{
    std::vector<std::string> words;
    std::vector<float> all;  // the weights, [words,T]
    const seq2seq::id_sentence ids = english(pair.english);
    const seq2seq::id_sentence* const only = &ids;  // a batch of one
    auto [memory, s] = model.encode(seq2seq::make_source({&only, 1}, marks));
    auto state = model.attend.start(memory);
    for (word_ids word(1, 1); words.size() < 50;) {
        const auto y = ops::block(ops::lookup(model.german, word), 0);
        const auto [after, readout, weights, next] = model.step(memory, state, s, y);
        const auto scores = ops::linear(readout, model.W_o, model.b_o);  // [1,V]
        word(0, 0) = static_cast<std::uint32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
        if (word(0, 0) == 0) break;
        words.push_back(german.words[word(0, 0)]);
        all.insert(all.end(), weights.begin(), weights.end() - 1);  // without that of <end>
        s = after, state = next;
    }
    return std::pair{words, all};
}

int main(int argc, char** argv)
{
    course::pictures_to(argc, argv);
    random_source random{8};
    auto W = nn::glorot<float>(random, H, H), U = nn::glorot<float>(random, 2 * H, H);
    const attention attend{score::additive{W, U, nn::small_vector<float>(random, H)}, normalize::softmax{},
                           combine::weighted_sum{}};
    const numbers::split data = numbers::sample(7, 10000, 0, 500);  // for training; 500 others for a test
    vocabulary english, german;
    const auto model = learn(attend, data.train, english, german, 300);
    std::size_t right = 0;
    for (const auto& pair : data.test) right += translate(model, pair, english, german).first == pair.german ? 1u : 0u;
    course::holds("at least 450 of 500 new numbers are translated without a mistake", right >= 450);
    const auto pair = numbers::say(724);
    const auto [words, weights] = translate(model, pair, english, german);
    course::picture("07_alignment", weights, pair.english, words, pair.links);
    return 0;  // step 8 includes this file and renames main
}

// A ◆ marks which word translates which. The model was not told: only words count in its loss. Sometimes it looks next
// to the right word, since an annotation also knows its neighbors.
//
// ## Exercises
//
// Write your answers into `exercises/07.hpp`; `exercise_07` grades them.
// - **a.** Compute a step of the GRU in loops, from the equations above.
// - **b.** Compute links from weights: each target word with the source word of its largest weight, if at least ½.
