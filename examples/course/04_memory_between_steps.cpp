// SPDX-License-Identifier: BSD-3-Clause
// test: --out .

// # 4. Memory between steps
//
// A translator reads "veni vidi vici" and should write "I came, I saw, I conquered". It writes: "I came, I came, I
// came". Neural translators are known for this. This step shows the cause and three remedies.
//
// To isolate the effect of memory, we use the simplest annotations. Word j has a 1 in position j, so the dot product
// picks number j of the query: *the first three numbers of the query are the scores*. The fourth position is free;
// coverage will write there.

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/nn/init.hpp>
#include <heed/normalize/local_m.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/score/additive.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/with_fertility.hpp>

#include "course.hpp"
#include "picture.hpp"

using namespace heed;
using combine::weighted_sum, normalize::softmax;

const array<double, 3> annotations{{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};  // [1,3,4]

// ## A decoder that is stuck
//
// The **decoder** is the part of a translator that writes. The query comes from the decoder's state, and the state
// changes slowly. After "I came, I" it is much the same as after "I", so the query is much the same:
//
//     step 1   4  2  0      "veni, I think"
//     step 2   4  3  0      "veni, I think; vidi looks better than before"
//     step 3   4  3  1      "veni, I think; vici looks better than before"

const std::vector<array<double, 2>> queries{{{4, 2, 0, 1}}, {{4, 3, 0, 1}}, {{4, 3, 1, 1}}};  // [1,4] each

// `translate` runs the three queries. For each, it writes the phrase of the word with the largest weight. It draws the
// weights and compares them with the numbers in the text.

std::string translate(const std::string& name, const auto& attend, const std::vector<double>& promised)
{
    const std::vector<std::string> source{"veni", "vidi", "vici"}, phrases{"I came", "I saw", "I conquered"};
    std::vector<float> shown;
    std::vector<std::string> said;
    const auto memory = attend.on(annotations);
    auto state = attend.start(memory);
    std::printf("%s\n", name.c_str());
    for (std::size_t step = 0; step < queries.size(); ++step) {
        const auto [context, w, next] = attend.step(memory, queries[step], state);
        state = next;
        std::size_t best = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            if (w(0, j) > w(0, best)) best = j;
            const double must = promised[3 * step + j];
            if (std::abs(w(0, j) - must) > 0.0005) course::says(name + ", " + source[j], w(0, j), must);
        }
        std::printf("  step %zu: %.3f %.3f %.3f\n", step + 1, w(0, 0), w(0, 1), w(0, 2));
        said.push_back(phrases[best]);
        shown.insert(shown.end(), w.begin(), w.end());
    }
    course::picture(name, shown, source, said);
    return said[0] + ", " + said[1] + ", " + said[2];
}

// The softmax looks at "veni" three times: the scores of "vidi" and "vici" have grown, but "veni" is still the best.
//
//     step 1   0.867  0.117  0.016   ██░░     I came
//     step 2   0.721  0.265  0.013   ▓▓▒▒     I came
//     step 3   0.705  0.259  0.035   ▓▓▒▒     I came
//
// It *cannot* do better. Its weights depend only on the scores of this step, and these do not show that "veni" has
// already been translated. This is true for every score that reads only the query and the annotations, including the
// **additive** score of Bahdanau et al. 2015, the first attention mechanism: e_j = vᵀ tanh(W s + U h_j), where s is the
// query. The same query gives the same weights, for any W, U and v; we draw them at random.

void no_memory()
{
    const attention attend{score::dot{}, softmax{}, weighted_sum{}};
    const std::string text =
        translate("softmax", attend, {0.867, 0.117, 0.016, 0.721, 0.265, 0.013, 0.705, 0.259, 0.035});
    course::holds(text, text == "I came, I came, I came");

    random_source random{1};
    const auto W = nn::glorot<double>(random, 4, 8), U = nn::glorot<double>(random, 4, 8);  // random matrices
    const attention additive{score::additive{W, U, nn::small_vector<double>(random, 8)}, softmax{}, weighted_sum{}};
    const auto memory = additive.on(annotations);
    const auto first = additive.step(memory, queries[0], additive.start(memory));
    const auto second = additive.step(memory, queries[0], first.state);
    course::holds("additive: the same query gives the same weights", first.weights == second.weights);
}

// ## Temporal attention: what is new in the query?
//
// Sankaran et al. 2016 divide by the past: a word that had high scores before needs a higher one now.
//
//     u_{t,j} = e_{t,j} - log Σ_{k<t} exp(e_{k,j}),  α_t = softmax(u_t);  in the first step, u = e
//
// In step 2 the past is the first query: u = (4, 3, 0) - (4, 2, 0) = (0, 1, 0). The score of "vidi" has risen, and
// "vidi" wins:
//
//     step 1   0.867  0.117  0.016   ██░░     I came
//     step 2   0.212  0.576  0.212   ░░▓▓░░   I saw
//     step 3   0.193  0.282  0.525   ░░▒▒▓▓   I conquered
//
// The sum over the past is the **state**: one number for each word, kept as its logarithm. The mechanism does not hide
// it: `start` returns it, and `step` takes it and returns the next one. So you can look at it, copy it, and continue
// from one point in two ways; step 10 searches for the best translation like this. Below, we continue with the second
// query, as above, and then from the same state with the first query again: nothing in it is new, and every word gets a
// third, 0.333.

void temporal()
{
    const attention attend{score::dot{}, normalize::temporal{}, weighted_sum{}};
    const std::string text =
        translate("temporal", attend, {0.867, 0.117, 0.016, 0.212, 0.576, 0.212, 0.193, 0.282, 0.525});
    course::holds(text, text == "I came, I saw, I conquered");

    const auto memory = attend.on(annotations);
    const auto once = attend.step(memory, queries[0], attend.start(memory)).state;
    const auto one_way = attend.step(memory, queries[1], once), other_way = attend.step(memory, queries[0], once);
    course::says("the state after step 1, veni", once.normalize.history(0, 0), 4, 0);
    course::says("the state after step 2, veni", one_way.state.normalize.history(0, 0), 4.693);  // log(e⁴ + e⁴)
    course::says("second query next, vidi     ", one_way.weights(0, 1), 0.576);
    course::says("first query again, vidi     ", other_way.weights(0, 1), 0.333);
}

// ## Coverage: how much attention has each word had?
//
// Tu et al. 2016 add up the weights, C_j = Σ α_j, and the score reads the sum. A trained model learns how to use it. We
// choose its parameters by hand: the fourth number of each annotation becomes -4 C_j, and the query multiplies it by 1.
// So each word's score falls by four times the attention that it has had.
//
//     step 1   0.867  0.117  0.016   ██░░     I came
//     step 2   0.112  0.826  0.062   ░░██░░   I saw
//     step 3   0.307  0.130  0.563   ▒▒░░▓▓   I conquered
//
// The paper expects Φ_j = N σ(U_f h_j) target words for word j, its *fertility*, and adds up α_j / Φ_j; σ is the
// sigmoid of step 2. With U_f = 0 and N = 2, the fertility of each word is 1.

void coverage()
{
    const array<double, 1> v_c{0, 0, 0, -4}, U_f{0, 0, 0, 0};
    const attention attend{score::with_fertility{score::dot{}, v_c, U_f, 2}, softmax{}, weighted_sum{}};
    const std::string text =
        translate("coverage", attend, {0.867, 0.117, 0.016, 0.112, 0.826, 0.062, 0.307, 0.130, 0.563});
    course::holds(text, text == "I came, I saw, I conquered");
}

// ## Local attention: a moving window
//
// In Luong et al. 2015, step t looks only at the words around position t; here, one on each side. The mechanism does
// not know where it has looked. It counts steps.
//
//     step 1   0.881  0.119  0       ██░░     I came
//     step 2   0.721  0.265  0.013   ▓▓▒▒     I came
//     step 3   0      0.881  0.119     ██░░   I saw
//
// "I came, I came, I saw": the window leaves "veni" behind in the end, but inside the window the softmax repeats itself
// as before. A window is cheap, and it works well if both languages say things in the same order. It also accepts any
// normalizer: `local_m{1, temporal{}}` moves and remembers.

void local()
{
    const attention window{score::dot{}, normalize::local_m{1}, weighted_sum{}};
    const std::string text = translate("local", window, {0.881, 0.119, 0, 0.721, 0.265, 0.013, 0, 0.881, 0.119});
    course::holds(text, text == "I came, I came, I saw");

    const attention both{score::dot{}, normalize::local_m{1, normalize::temporal{}}, weighted_sum{}};
    const std::string better =
        translate("local-temporal", both, {0.881, 0.119, 0, 0.212, 0.576, 0.212, 0, 0.350, 0.650});
    course::holds(better, better == "I came, I saw, I conquered");
}

int main(int argc, char** argv)
{
    course::pictures_to(argc, argv);
    no_memory();
    temporal();
    coverage();
    local();
}

// ## Exercises
//
// Write your answers into `exercises/04.hpp`; `exercise_04` grades them.
//
// - **a.** Compute temporal attention yourself: from the scores of all steps so far to the weights of the last one.
//   Scores of 1000 must not break it. (log(eᵃ + eᵇ) = m + log(eᵃ⁻ᵐ + eᵇ⁻ᵐ) for every m: which m is safe?)
// - **b.** Write a normalizer that remembers its last weights and avoids looking there again: α_t = softmax(e_t - λ
//   α_{t-1}). Only three lines are missing: the first state, the weights, the next state.
