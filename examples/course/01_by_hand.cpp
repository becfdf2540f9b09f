// SPDX-License-Identifier: BSD-3-Clause
// test: --out .

// # 1. Attention by hand
//
// A translator has read "small cats dream" and is writing German: "kleine Katzen träumen". It has written "kleine".
// Which English word should it look at for the next one?
//
// You see it at once: at "cats". A program needs numbers for this. Let each word be two numbers: how much it is a
// *thing*, and how much it is an *action*.
//
//     small  h₁ = (0.5, 0)
//     cats   h₂ = (1,   0)
//     dream  h₃ = (0,   1)
//
// Such a list of numbers for a source word is called its **annotation**. Those of a real system are longer, some
// hundred numbers, and nobody chooses them: they are learned. We choose, so that we can follow every step.
//
// What the translator looks for is a list of numbers, too, the **query**. Ours says "a thing, please":
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

struct three {  // a number for each of the words
    double small, cats, dream;
};

// ## Scores: how well does each word match the query?
//
// Multiply number by number, and add. This is the *dot product*. It is large where both lists have their large numbers
// in the same places.
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
// Scores can be any numbers, negative ones too. We want shares: none below 0, together 1, the greatest for the best
// score. The function exp makes numbers positive and keeps their order. Then divide by the sum. This is the
// **softmax**, and the shares are called **weights**.
//
//     α_j = exp(e_j) / Σ_k exp(e_k)

three softmax(three e)
{
    const double small_part = std::exp(e.small), cats_part = std::exp(e.cats), dream_part = std::exp(e.dream);
    const double sum = small_part + cats_part + dream_part;
    return {small_part / sum, cats_part / sum, dream_part / sum};  // 0.245   0.665   0.090
}

// Two thirds of the attention go to "cats", a quarter to "small", and a little to "dream".
//
// Why not all of it to the best word? Because an `if` cannot learn. Change the query a little, from 2 to 2.1, and an
// `if` decides as before: nothing says whether that was better or worse. The softmax answers: the weight of "cats"
// grows from 0.665 to 0.679. Whatever changes a little can be learned little by little. Step 5 lives on this.
//
// ## Context: what does the translator get?
//
// The annotations, each multiplied by its weight, added up:
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

// The context (0.788, 0.090) is mostly "cats", with a bit of the rest: a thing. From it, the translator chooses the
// word "Katzen". That is all. Attention is a score, a softmax and a sum.
//
// ## The same in heed
//
// heed says it with three **policies**, small types that each do one of the three:
//
//     score       e = q · h            score::dot
//     normalize   α = softmax(e)       normalize::softmax
//     combine     c = Σ α h            combine::weighted_sum
//
// It takes several sentences at once, a *batch*, so annotations have three axes: `[B,T,D]` is B sentences of T words of
// D numbers. We have one sentence: `[1,3,2]`. Queries are `[B,Q]`: one for each sentence.
//
// `on` prepares a sentence for all the queries to come, `step` answers one query. The `state` is what attention
// remembers between two queries. The softmax remembers nothing; step 4 is about those that do.
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
    course::holds("  the same to the 12th digit", std::abs(weights(0, 1) - softmax(scores()).cats) < 1e-12 &&
                                                      std::abs(weights(0, 2) - softmax(scores()).dream) < 1e-12);
}

// ## A picture
//
// Three German words, three queries: "neither thing nor action" (-2, -2), "a thing" (2, 0), "an action" (0, 2). One row
// for each, one column for each English word; the darker, the more attention. (With `--out DIR` every step writes its
// pictures as SVG files, too.) `weights_of` asks several queries, `[B,S,Q]`, at once: S for each sentence.
//
//                ╭ small
//                │ ╭ cats
//                │ │ ╭ dream
//        kleine  ▓▓░░░░
//        Katzen  ░░▓▓░░
//       träumen  ░░░░██
//
// Read the rows: each word looks at its translation. Such a picture is called an **alignment**, and nobody had to tell
// attention about it: the queries and the annotations did.
//
// And a longer question is a surer one. Ask with (4, 0) instead of (2, 0), and "cats" gets 0.867 instead of 0.665: the
// scores are twice as far from each other.

void picture()
{
    using namespace heed;
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const array<double, 3> queries{{{-2, -2}, {2, 0}, {0, 2}, {4, 0}}};       // [B,S,Q] = [1,4,2]
    const auto weights = attend.weights_of(attend.on(annotations), queries);  // [B,S,T]
    const std::vector<float> shown(weights.data(), weights.data() + 9);       // of the first three
    const std::vector<std::string> source{"small", "cats", "dream"}, target{"kleine", "Katzen", "träumen"};
    course::picture("by-hand", shown, source, target);
    course::says("kleine looks at small ", weights(0, 0, 0), 0.576);
    course::says("Katzen looks at cats  ", weights(0, 1, 1), 0.665);
    course::says("träumen looks at dream", weights(0, 2, 2), 0.787);
    course::says("a longer question: cats", weights(0, 3, 1), 0.867);
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
// Write into `exercises/01.hpp`. `exercise_01` grades what you wrote.
//
// - **a.** The softmax above breaks: exp(1000) is more than a double can hold, and infinity / infinity is not a number.
//   Write one that takes scores of any size. (What happens to the weights if you subtract 5 from every score?)
// - **b.** A dictionary is searched by one thing and read for another. Let each word have a **key** that is compared
//   with the query, and a **value** that is summed. Divide the scores by √d, where d is the number of numbers in a key,
//   as every Transformer does: α = softmax(q · k_j / √d), c = Σ α_j v_j.
