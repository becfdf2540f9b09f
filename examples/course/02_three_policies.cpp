// SPDX-License-Identifier: BSD-3-Clause
// test: --out .

// # 2. Three policies
//
// Attention is a score, a normalizer and a combiner. You can replace any one without changing the other two. In this
// step we replace one at a time and look at the effect.
//
// The sentence and the query are those of step 1: small (0.5, 0), cats (1, 0), dream (0, 1). The first number is how
// much a word is a thing, the second how much it is an action. The query (2, 0) looks for a thing. `seen` runs this
// query, prints the weights, compares them with the numbers in this text, and keeps them for a picture.

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/attentional.hpp>
#include <heed/combine/elementwise_sum.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/sigmoid.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/sparsemax.hpp>
#include <heed/normalize/temperature.hpp>
#include <heed/score/cosine.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/general.hpp>

#include "course.hpp"
#include "picture.hpp"

using namespace heed;

const array<double, 3> annotations{{{0.5, 0}, {1, 0}, {0, 1}}};  // [1,3,2]
const array<double, 2> query{{2, 0}};                            // [1,2]

const std::vector<std::string> words{"small", "cats", "dream"};
std::vector<std::string> names;  // the mechanisms in the picture, with three weights each in `shown`
std::vector<float> shown;

void seen(const std::string& name, const auto& attend, const std::vector<double>& promised)
{
    const auto memory = attend.on(annotations);
    const auto w = attend.step(memory, query, attend.start(memory)).weights;  // [1,3]
    std::printf("%-20s %.3f %.3f %.3f\n", name.c_str(), w(0, 0), w(0, 1), w(0, 2));
    for (std::size_t j = 0; j < 3; ++j) {
        if (std::abs(w(0, j) - promised[j]) > 0.0005) course::says(name + ", " + words[j], w(0, j), promised[j]);
    }
    names.push_back(name);
    shown.insert(shown.end(), w.begin(), w.end());
}

// ## Another normalizer: how do scores become shares?
//
// The dot product scores the three words 1, 2 and 0. Here are four ways to turn these scores into weights:
//
// - **softmax** gives every word a share, even the worst one: 0.245, 0.665, 0.090.
// - **temperature** divides the scores before the softmax. Above 1, it evens out the shares: at 2, they are 0.307,
//   0.506, 0.186. Below 1, it sharpens them: at ½, "cats" gets 0.867, as with the longer query of step 1 and for the
//   same reason.
// - **sparsemax** gives a share of exactly 0 to words whose scores are too far behind: here 0, 1, 0.
// - **sigmoid** judges each word separately, from "no" (0) to "yes" (1): 0.731, 0.881, 0.500. These are not shares of a
//   whole: their sum is 2.112, and a longer sentence has a longer context vector.

void another_normalizer()
{
    const score::dot dot;
    const combine::weighted_sum sum;
    seen("dot, softmax", attention{dot, normalize::softmax{}, sum}, {0.245, 0.665, 0.090});
    seen("dot, temperature 2", attention{dot, normalize::temperature{2.0}, sum}, {0.307, 0.506, 0.186});
    seen("dot, temperature 0.5", attention{dot, normalize::temperature{0.5}, sum}, {0.117, 0.867, 0.016});
    seen("dot, sparsemax", attention{dot, normalize::sparsemax{}, sum}, {0, 1, 0});
    seen("dot, sigmoid", attention{dot, normalize::sigmoid{}, sum}, {0.731, 0.881, 0.500});
    course::says("  the sum of the last three", shown[12] + shown[13] + shown[14], 2.112);
}

// ## Another score: what is a good match?
//
// - **cosine** compares directions only, not lengths. "small" and "cats" point the same way, so they get the same
//   score. We scale it to 2 for equal directions: the scores 2, 2 and 0 become the shares 0.468, 0.468 and 0.063.
// - **general** has a matrix W between query and annotation, e = qᵀ W h. W learns which annotations to find for a
//   query. With the matrix below, a query for a thing finds an action: 0.107, 0.107, 0.787. While a translator writes a
//   noun, it may want to know the verb.
//
// For another score, you change one word in the line that builds the mechanism. The softmax stays as it is: it sees
// only scores, not queries and annotations.

const array<double, 2> swap{{0, 1}, {1, 0}};  // W: thing to action, action to thing

void another_score()
{
    const normalize::softmax softmax;
    const combine::weighted_sum sum;
    seen("cosine, softmax", attention{score::cosine{2}, softmax, sum}, {0.468, 0.468, 0.063});
    seen("general, softmax", attention{score::general{swap}, softmax, sum}, {0.107, 0.107, 0.787});
}

// ## Another combiner: how are the weights used?
//
// **weighted_sum** returns the context c. **attentional** (Luong et al. 2015) joins c with the query in one layer of a
// network. `[c; q]` is one list, the numbers of c followed by those of q; tanh keeps results between -1 and 1:
//
//     h̃ = tanh(W_c [c; q])
//
// Now one vector holds the context and the query, and the next network does not need both. With the W_c below, which
// adds half of each, the context (0.788, 0.090) and the query (2, 0) become tanh(1.394, 0.045) = (0.884, 0.045). The
// weights do not change.

const array<double, 2> halves{{0.5, 0}, {0, 0.5}, {0.5, 0}, {0, 0.5}};  // W_c: a row for each number of [c; q]

void another_combiner()
{
    const attention plain{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const attention joined{score::dot{}, normalize::softmax{}, combine::attentional{halves}};
    const auto memory = plain.on(annotations);
    const auto c = plain.step(memory, query, plain.start(memory)), h = joined.step(memory, query, joined.start(memory));
    std::puts("attentional");
    course::says("  context, thing ", c.context(0, 0), 0.788);
    course::says("  context, action", c.context(0, 1), 0.090);
    course::says("  joined, thing  ", h.context(0, 0), 0.884);
    course::says("  joined, action ", h.context(0, 1), 0.045);
    course::holds("  the same weights", c.weights == h.weights);
}

// ## All combinations
//
// Three scores and four normalizers make twelve mechanisms. Their code is not written out twelve times: when your
// program names a pair, the compiler builds it, as if you had written it by hand. Most papers propose one new policy
// and keep the other two. ("warm" is a temperature of 2.)
//
//                          ╭ small
//                          │ ╭ cats
//                          │ │ ╭ dream
//             dot softmax  ░░▓▓░░
//                dot warm  ▒▒▓▓░░
//           dot sparsemax    ██
//             dot sigmoid  ▓▓██▓▓
//          cosine softmax  ▒▒▒▒░░
//             cosine warm  ▒▒▒▒░░
//        cosine sparsemax  ▓▓▓▓
//          cosine sigmoid  ████▓▓
//         general softmax  ░░░░██
//            general warm  ░░░░▓▓
//       general sparsemax      ██
//         general sigmoid  ▓▓▓▓██

void all_with_all()
{
    using normalize::softmax, normalize::temperature, normalize::sparsemax, normalize::sigmoid;
    names.clear(), shown.clear();
    std::puts("\nAll combinations      small cats dream");
    const auto with = [](const std::string& name, const auto& score, const std::vector<std::vector<double>>& promised) {
        const combine::weighted_sum sum;
        seen(name + " softmax", attention{score, softmax{}, sum}, promised[0]);
        seen(name + " warm", attention{score, temperature{2.0}, sum}, promised[1]);
        seen(name + " sparsemax", attention{score, sparsemax{}, sum}, promised[2]);
        seen(name + " sigmoid", attention{score, sigmoid{}, sum}, promised[3]);
    };
    with("dot", score::dot{}, {{0.245, 0.665, 0.090}, {0.307, 0.506, 0.186}, {0, 1, 0}, {0.731, 0.881, 0.5}});
    with("cosine", score::cosine{2},
         {{0.468, 0.468, 0.063}, {0.422, 0.422, 0.155}, {0.5, 0.5, 0}, {0.881, 0.881, 0.5}});
    with("general", score::general{swap}, {{0.107, 0.107, 0.787}, {0.212, 0.212, 0.576}, {0, 0, 1}, {0.5, 0.5, 0.881}});
    course::picture("three-policies", shown, words, names);
    course::holds("twelve mechanisms", names.size() == 12);
}

// ## Policies that do not fit
//
// A score may also give each word a weight *per dimension*, a list of weights as long as its annotation;
// **elementwise_sum** sums these. If you pair that combiner with the dot product, which has one weight for each word,
// your program does not compile. The compiler reports:
//
//     heed: this score and this combiner do not fit: a score per position goes with combine::weighted_sum, a score per
//     dimension with combine::elementwise_sum, …

static_assert(fault_of<score::dot, normalize::softmax, combine::weighted_sum>() == composition_fault::none);
static_assert(fault_of<score::dot, normalize::softmax, combine::elementwise_sum>() ==
              composition_fault::different_weights);

int main(int argc, char** argv)
{
    course::pictures_to(argc, argv);
    another_normalizer();
    another_score();
    another_combiner();
    all_with_all();
}

// ## Exercises
//
// Write your answers into `exercises/02.hpp`; `exercise_02` grades them. Annotations and query are those above.
//
// - **a.** Build the mechanism that gives "small" and "cats" exactly one half each, and "dream" exactly 0.
// - **b.** Find a matrix W for `score::general` such that, with the softmax, "Katzen" (2, 0) looks at "dream" and
//   "träumen" (0, 2) looks at "cats", both with a weight of at least 0.9. Start from `swap`: why does it not reach 0.9?
