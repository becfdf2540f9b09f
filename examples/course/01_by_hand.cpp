// SPDX-License-Identifier: BSD-3-Clause
// test: --out .

// # 1. Attention by hand
//
// A translator has read "small cats dream" and is writing German: "kleine Katzen träumen". It has written "kleine".
// Which English word should it look at next?
//
// You see it at once: "cats". A program needs numbers to decide this. Let us describe each word by two numbers: how
// much it is a *thing*, and how much it is an *action*.
//
//     small  h₁ = (0.5, 0)
//     cats   h₂ = (1,   0)
//     dream  h₃ = (0,   1)
//
// Such a list of numbers for a source word is called its **annotation**. In a real system, annotations have several
// hundred numbers, and all of these are learned. We choose ours so that we can follow every step.
//
// The word that the translator is looking for is also described by a list of numbers, the **query**. Ours means "a
// thing, please":
//
//     q = (2, 0)

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/dot.hpp>

#include "course.hpp"
#include "picture.hpp"

constexpr double small[2] = {0.5, 0}, cats[2] = {1, 0}, dream[2] = {0, 1};
constexpr double query[2] = {2, 0};

struct three {  // one number for each word
    double small, cats, dream;
};

// ## Scores: how well does each word match the query?
//
// Multiply the two lists number by number, and add up the products. This is the *dot product*. It is large if both
// lists have large numbers in the same positions.
//
//     e_j = q · h_j

three scores()
{
    return {query[0] * small[0] + query[1] * small[1],   // 2 · 0.5 + 0 · 0 = 1
            query[0] * cats[0] + query[1] * cats[1],     // 2 · 1   + 0 · 0 = 2
            query[0] * dream[0] + query[1] * dream[1]};  // 2 · 0   + 0 · 1 = 0
}

// ## Weights: how much attention does each word get?
//
// A score can be any number, even a negative one. We want shares: none below 0, adding up to 1, the largest for the
// best score. The function exp makes every number positive and keeps the order. Then we divide by the sum. This is the
// **softmax**, and the shares are called **weights**.
//
//     α_j = exp(e_j) / Σ_k exp(e_k)

three softmax(three e)
{
    const double small_part = std::exp(e.small), cats_part = std::exp(e.cats), dream_part = std::exp(e.dream);
    const double sum = small_part + cats_part + dream_part;
    return {small_part / sum, cats_part / sum, dream_part / sum};  // 0.245   0.665   0.090
}

// Two thirds of the attention goes to "cats", a quarter to "small", and a little to "dream".
//
// Why not give all of it to the best word? Because an `if` cannot learn. Change the query a little, from 2 to 2.1. An
// `if` picks the same word as before, so we cannot tell whether the change was good or bad. With the softmax, the
// weight of "cats" grows from 0.665 to 0.679. If a small change of a number always changes the result a little, the
// number can be learned in small steps. Step 5 is built on this.
//
// ## Context: what does the translator get?
//
// It gets the sum of the annotations, each multiplied by its weight:
//
//     c = Σ_j α_j h_j

void by_hand()
{
    std::puts("By hand");
    const three e = scores();
    course::says("  score of small", e.small, 1, 0);
    course::says("  score of cats ", e.cats, 2, 0);
    course::says("  score of dream", e.dream, 0, 0);

    const three a = softmax(e);
    course::says("  weight of small", a.small, 0.245);
    course::says("  weight of cats ", a.cats, 0.665);
    course::says("  weight of dream", a.dream, 0.090);
    course::says("  weight of cats, if the query is 2.1", softmax({1.05, 2.1, 0}).cats, 0.679);

    const double thing = a.small * small[0] + a.cats * cats[0] + a.dream * dream[0];
    const double action = a.small * small[1] + a.cats * cats[1] + a.dream * dream[1];
    course::says("  context, thing ", thing, 0.788);  // 0.245 · 0.5 + 0.665 · 1 + 0.090 · 0
    course::says("  context, action", action, 0.090);
}

// The context (0.788, 0.090) is mostly "cats" with a bit of the other two: a thing. From it, the translator chooses the
// word "Katzen". That is all. Attention is a score, a softmax and a sum.
//
// ## Attention in heed
//
// In heed, you build attention from three **policies**, small types that compute one line each:
//
//     score       e = q · h            score::dot
//     normalize   α = softmax(e)       normalize::softmax
//     combine     c = Σ α h            combine::weighted_sum
//
// heed processes several sentences at once, a *batch*, so annotations have three axes: `[B,T,D]` means B sentences of T
// words of D numbers. We have one sentence: `[1,3,2]`. Queries are `[B,Q]`: one for each sentence.
//
// `on` prepares a sentence for all queries, and `step` computes the attention for one query. The `state` carries
// information from one query to the next. The softmax needs none; step 4 is about normalizers that do.
// `heed::array<double, 3>` is an array of doubles with three axes.

const heed::array<double, 3> annotations{{{0.5, 0}, {1, 0}, {0, 1}}};  // [B,T,D] = [1,3,2]

void in_heed()
{
    using namespace heed;
    std::puts("In heed");
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    const auto state = attend.start(memory);
    const array<double, 2> q{{2, 0}};                                     // [B,Q] = [1,2]
    const auto [context, weights, next] = attend.step(memory, q, state);  // [B,D], [B,T]

    course::says("  weight of small", weights(0, 0), 0.245);
    course::says("  weight of cats ", weights(0, 1), 0.665);
    course::says("  weight of dream", weights(0, 2), 0.090);
    course::says("  context, thing ", context(0, 0), 0.788);
    course::says("  context, action", context(0, 1), 0.090);
    course::holds("  equal to 12 digits", std::abs(weights(0, 1) - softmax(scores()).cats) < 1e-12 &&
                                              std::abs(weights(0, 2) - softmax(scores()).dream) < 1e-12);
}

// ## A picture
//
// Three German words, three queries: "neither thing nor action" (-2, -2), "a thing" (2, 0), "an action" (0, 2). The
// picture has a row for each query and a column for each English word; the darker, the more attention. (With `--out
// DIR`, every step also writes its pictures as SVG files.) `weights_of` takes several queries at once, `[B,S,Q]`: S for
// each sentence.
//
//                ╭ small
//                │ ╭ cats
//                │ │ ╭ dream
//        kleine  ▓▓░░░░
//        Katzen  ░░▓▓░░
//       träumen  ░░░░██
//
// Read the rows: each word looks at its translation. Such a picture is called an **alignment**. We did not specify it
// anywhere: it follows from the queries and the annotations.
//
// A longer query makes the attention sharper. With (4, 0) instead of (2, 0), "cats" gets 0.867 instead of 0.665,
// because the scores are twice as far apart.

void picture()
{
    using namespace heed;
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const array<double, 3> queries{{{-2, -2}, {2, 0}, {0, 2}, {4, 0}}};       // [B,S,Q] = [1,4,2]
    const auto weights = attend.weights_of(attend.on(annotations), queries);  // [B,S,T]
    const std::vector<float> shown(weights.data(), weights.data() + 9);       // the first three rows
    const std::vector<std::string> source{"small", "cats", "dream"}, target{"kleine", "Katzen", "träumen"};
    course::picture("by-hand", shown, source, target);
    course::says("kleine looks at small ", weights(0, 0, 0), 0.576);
    course::says("Katzen looks at cats  ", weights(0, 1, 1), 0.665);
    course::says("träumen looks at dream", weights(0, 2, 2), 0.787);
    course::says("a longer query: cats  ", weights(0, 3, 1), 0.867);
}

int main(int argc, char** argv)
{
    course::pictures_to(argc, argv);
    by_hand();
    in_heed();
    picture();
}

// ## Exercises
//
// Write your answers into `exercises/01.hpp`. `exercise_01` grades them.
//
// - **a.** The softmax above breaks for large scores: exp(1000) is more than a double can hold, and infinity / infinity
//   is not a number. Write one that takes scores of any size. (What happens to the weights if you subtract 5 from every
//   score?)
// - **b.** In a dictionary, you search for one thing and read another. Give each word a **key** that is compared with
//   the query, and a **value** that is summed. Divide the scores by √d, where d is the length of a key, as every
//   Transformer does: α = softmax(q · k_j / √d), c = Σ α_j v_j.
