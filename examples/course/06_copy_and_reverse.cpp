// SPDX-License-Identifier: BSD-3-Clause
// test:

// # 6. Learning to copy and to reverse
//
// Until now, all parameters were given. Here they are learned. A model sees words, such as `lemon`, and the same words
// backward, `nomel`. We do not tell it where to look. In the end it looks at the last letter first, then at the one
// before it, and so on: its weights are a diagonal from the upper right to the lower left. Trained on words and their
// copies, the same model learns the other diagonal.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/nn/init.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/losses.hpp>
#include <heed/score/scaled_dot.hpp>
#include <heed/train/adam.hpp>

#include "course.hpp"
#include "picture.hpp"

using namespace heed;

// ## Data: words as numbers
//
// A letter is a number from 0 to 25. The model processes many words at once, a **batch**, padded as in step 3; `real`
// has the length of each word. `letters(s, b)` is letter s of word b, `from_front` and `from_back` its position from
// either end. `expected` has the letters to write, each with a weight: 1 for a letter, 0 for padding.
//
// *Mind the order of the axes.* `word_ids` are `[S,B]`, position first, as a decoder reads them, and so are the vectors
// that `lookup` returns, `[S,B,D]`. Attention takes `[B,S,D]`, word first. `ops::swap_axes` swaps the two.

constexpr std::size_t alphabet = 26, longest = 10, D = 32;

struct batch {
    word_ids letters{}, from_front{}, from_back{};
    ops::expected_words<float> expected{};
    lengths real{};
    double written = 0;  // letters to write
};

batch make_batch(const std::vector<std::string>& words, bool backwards)
{
    const std::size_t B = words.size();
    batch made;
    made.letters = made.from_front = made.from_back = made.expected.words = word_ids(longest, B);
    made.expected.weights.resize(longest * B);
    std::vector<std::size_t> real;
    for (std::size_t b = 0; b < B; ++b) {
        const auto n = static_cast<std::uint32_t>(words[b].size());
        for (std::uint32_t s = 0; s < n; ++s) {
            made.letters(s, b) = static_cast<std::uint32_t>(words[b][s] - 'a');
            made.from_front(s, b) = s;
            made.from_back(s, b) = n - 1 - s;
            made.expected.words(s, b) = static_cast<std::uint32_t>(words[b][backwards ? n - 1 - s : s] - 'a');
            made.expected.weights[s * B + b] = 1;
        }
        real.push_back(n);
        made.written += n;
    }
    made.real = lengths(real);
    return made;
}

// The words have no meaning: two to ten letters, drawn at random, the same in every run.
std::vector<std::string> draw_words(random_source& random, std::size_t count)
{
    std::vector<std::string> words(count);
    for (std::uint64_t stream = random.next_stream(), i = 0; std::string & word : words) {
        word.resize(2 + below(longest - 1, stream, i++));
        for (char& letter : word) letter = static_cast<char>('a' + below(alphabet, stream, i++));
    }
    return words;
}

// ## The model
//
// A table has a vector of D numbers for each letter, its **embedding**; two more tables have one for each position. The
// sum of the three describes a letter in its word: an annotation. Each position that is written has a vector as well,
// the query. All tables start at random and are learned.
//
//     h_j = letter(x_j) + front(j) + back(n−1−j)        annotations
//     q_s = step(s)                                     queries
//     c_s = Σ_j α_sj h_j, α_s = softmax(q_s · h / √D)   attention, as in step 1
//     p_s = softmax(c_s W + b)                          probability of each letter of the alphabet
//
// `parameters` names the members that are learned (step 3): heed uses it to put a model on a tape and to update it.

template <class Matrix, class Vector>
struct writer {
    Matrix letter, front, back, step;  // [26,D], and [10,D] three times
    Matrix W;                          // [D,26]
    Vector b;                          // [26]
    attention<score::scaled_dot, normalize::softmax, combine::weighted_sum> attend{};

    auto memory(const batch& words) const
    {
        const auto places = ops::add(ops::lookup(front, words.from_front), ops::lookup(back, words.from_back));
        const auto h = ops::add(ops::lookup(letter, words.letters), places);  // [S,B,D]
        return attend.on(ops::swap_axes(h), words.real);                      // reads [B,S,D]
    }
    auto queries(const batch& words) const { return ops::swap_axes(ops::lookup(step, words.from_front)); }  // [B,S,D]

    auto scores(const batch& words) const  // of each letter, [S,B,26]
    {
        return ops::linear(ops::swap_axes(attend(memory(words), queries(words))), W, b);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return ::writer{visit("letter", self.letter), visit("front", self.front), visit("back", self.back),
                        visit("step", self.step),     visit("W", self.W),         visit("b", self.b)};
    }
};
template <class Matrix, class Vector>
writer(Matrix, Matrix, Matrix, Matrix, Matrix, Vector) -> writer<Matrix, Vector>;

// ## A picture of the weights
//
// The model writes the most likely letters. The picture has a row for each letter that it writes: its weights.

void show(const auto& model, const std::string& word, bool backwards, const std::string& when)
{
    const batch one = make_batch({word}, backwards);
    const auto scores = model.scores(one);                                                // [S,1,26]
    const auto weights = model.attend.weights_of(model.memory(one), model.queries(one));  // [1,S,S]
    std::vector<float> shown;
    std::vector<std::string> source, target;
    for (std::size_t s = 0; s < word.size(); ++s) {
        const float* const a = &scores(s, 0, 0);
        target.emplace_back(1, static_cast<char>('a' + (std::max_element(a, a + alphabet) - a)));
        source.emplace_back(1, word[s]);
        for (std::size_t j = 0; j < word.size(); ++j) shown.push_back(weights(0, s, j));
    }
    const std::string name = std::string(backwards ? "06_reverse_" : "06_copy_") + when;
    course::picture(name, shown, source, target, {}, word + ", " + when + " learning");
}

// ## The loss and the loop
//
// The **loss** is one number that tells how wrong the model is. The usual choice is cross-entropy: minus the logarithm
// of the probability that the model gave to the right letter, averaged over all letters. It is 0 for a model that is
// sure and right. A model that knows nothing gives 1/26 to each letter; its loss is log 26 = 3.258.
//
// Training repeats five lines: clear the tape, put the model on it, compute the loss, run the backward pass (step 5),
// and move each number a little against its gradient. **Adam** is a rule for this move. It divides each gradient by its
// usual size, so that one learning rate fits all numbers.

void learn(bool backwards)
{
    std::printf("\n%s\n", backwards ? "Words and the same words backward" : "Words and their copies");
    random_source random{6};
    course::says("log 26", std::log(26.0), 3.258);
    const auto table = [&](std::size_t rows) { return nn::gaussian<float>(random, rows, D, 0.3); };
    auto W = nn::glorot<float>(random, D, alphabet);
    writer model{table(alphabet), table(longest), table(longest), table(longest), W, nn::zeros<float>(alphabet)};
    show(model, "lemon", backwards, "before");

    ad::tape<float> tape;
    train::adam<float> adam({.rate = 0.01});
    for (int step = 1; step <= 300; ++step) {
        const batch words = make_batch(draw_words(random, 32), backwards);
        tape.clear();
        const auto taped = ad::lift(tape, model);
        const auto loss = ops::scale(ops::cross_entropy(taped.scores(words), words.expected), 1 / words.written);
        tape.backward(loss);
        adam.step(model, taped, tape, 1.0);  // a gradient longer than 1 is shortened to 1
        if (step % 100 == 1) std::printf("step %3d  loss %.3f\n", step, double(*loss.data()));
        if (step == 1) course::holds("this is near log 26", std::abs(double(*loss.data()) - std::log(26.0)) < 0.3);
    }
    const batch unseen = make_batch(draw_words(random, 200), backwards);
    const double loss = double(*ops::cross_entropy(model.scores(unseen), unseen.expected).data()) / unseen.written;
    course::holds("on new words, the loss is below 0.1", loss < 0.1);
    show(model, "lemon", backwards, "after");
}

int main(int argc, char** argv)
{
    course::pictures_to(argc, argv);
    learn(false);
    learn(true);
}

// A loss of 0.1 means a probability of about 0.9 for the right letter. The model has learned a rule, not a list: it has
// read 9,600 words, and there are 26^10 words of ten letters alone. The rule does not cover an eleventh letter, which
// has no row in the tables. In step 9, positions are computed.
//
// ## Exercises
//
// Write your answers into `exercises/06.hpp`; `exercise_06` grades them.
//
// - **a.** Compute the loss: minus the logarithm of a letter's probability, from the scores of all letters. Scores of
//   1000, whose exponential is infinite, must work as well.
// - **b.** Compute the update: one step of plain gradient descent that shortens a gradient if it is too long.
