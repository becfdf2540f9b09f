// SPDX-License-Identifier: BSD-3-Clause
// test: --out .

// # 3. Your own score, and verify
//
// The dot product prefers long annotations. "small" is half a thing, (0.5, 0), and "cats" a whole one, (1, 0). No query
// of the form (x, 0) with x > 0 ever scores "small" above "cats", not even (0.5, 0), which is "small" itself. For that
// query the dot product gives "small" 0.326 and "cats" 0.419.
//
// We want a score that measures "how near?" instead of "how long?". heed has no score by that name, so we write one.

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/sums.hpp>
#include <heed/score/dot.hpp>
#include <heed/verify.hpp>

#include "course.hpp"
#include "picture.hpp"

// ## The policy
//
// The score is the negative squared distance between query and annotation, so the nearest annotation has the highest
// score. Each dimension d has a factor w_d, its importance:
//
//     e_j = -Σ_d w_d (q_d - h_{j,d})²
//
// A score is a struct with three members:
//
// - `traits`: its properties. Here, the kind of its weights: one for each position.
// - `operator()`: computes the scores `[B,T]` of queries `[B,Q]` and keys `[B,T,D]`, for a whole batch at once. Write
//   it in heed's operations, `ops::…`, never in loops. Then it works on numbers and, in training, on variables that
//   track their gradient (step 5). `heed::tensor auto` accepts both.
// - `parameters`: passes every learned member to `visit`, with a name, and makes a policy of the same kind from the
//   results; these may be variables instead of numbers. (`mine::nearness{…}` deduces the new type; `nearness{…}` alone
//   would mean the struct that we are in.)

namespace mine {

template <class Vector>
struct nearness {
    Vector w;  // [D]
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};

    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        using namespace heed;
        const auto apart = ops::square(ops::subtract_per_position(keys, query));  // [B,T,D]: (key - query)²
        return ops::scale(ops::matvec(apart, w), -1);                             // [B,T]
    }

    static auto parameters(auto& self, auto&& visit) { return mine::nearness{visit("w", self.w)}; }
};
template <class Vector>
nearness(Vector) -> nearness<Vector>;  // clang before version 17 needs this

}  // namespace mine

// Use it like any other score. For the query (0.5, 0), it gives "small" the largest weight, 0.484, and "cats" 0.377.
// With factors of 10, the weights are sharper: 0.924 and 0.076. In the picture, each word's annotation is the query,
// first with the dot product, then with nearness and factors of 10. With the dot product, "small" finds "cats"; with
// nearness, each word finds itself.
//
//               ╭ small
//               │ ╭ cats
//               │ │ ╭ dream
//          dot  ▒▒▒▒▒▒
//               ▒▒▓▓░░
//               ░░░░▓▓
//     nearness  ██░░
//               ░░██
//                   ██

using heed::array, heed::attention, heed::combine::weighted_sum, heed::normalize::softmax;

const array<double, 3> annotations{{{0.5, 0}, {1, 0}, {0, 1}}};  // small, cats, dream: [1,3,2]
const array<double, 2> query{{0.5, 0}};                          // [1,2]

auto weights_of(const auto& attend)
{
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory)).weights;
}

void near_or_great()
{
    const auto great = weights_of(attention{heed::score::dot{}, softmax{}, weighted_sum{}});
    const auto near = weights_of(attention{mine::nearness{array<double, 1>{1, 1}}, softmax{}, weighted_sum{}});
    const auto sure = weights_of(attention{mine::nearness{array<double, 1>{10, 10}}, softmax{}, weighted_sum{}});
    course::says("dot: small", great(0, 0), 0.326);
    course::says("dot: cats ", great(0, 1), 0.419);
    course::says("nearness: small", near(0, 0), 0.484);
    course::says("nearness: cats ", near(0, 1), 0.377);
    course::says("nearness, w = 10: small", sure(0, 0), 0.924);
    course::says("nearness, w = 10: cats ", sure(0, 1), 0.076);

    std::vector<float> shown;
    const auto each_asks = [&](const auto& attend) {
        const auto all = attend.weights_of(attend.on(annotations), annotations);  // [1,3,3]: the words are the queries
        shown.insert(shown.end(), all.begin(), all.end());
    };
    each_asks(attention{heed::score::dot{}, softmax{}, weighted_sum{}});
    each_asks(attention{mine::nearness{array<double, 1>{10, 10}}, softmax{}, weighted_sum{}});
    const std::vector<std::string> source{"small", "cats", "dream"}, rows{"dot", "", "", "nearness", "", ""};
    course::picture("near-or-great", shown, source, rows);
}

// ## Is it right?
//
// Three words are not much of a test. Does the score work for sentences of different lengths in one batch? A tensor is
// a rectangle, so short sentences are filled up with **padding**. What if the padding contains garbage? Is the
// derivative right? heed has a list of such contracts, and `verify` tests every one on a mechanism of doubles, with any
// sizes that fit its parameters. It prints a line for each contract: whether it holds, and how it was tested.

void verified()
{
    const mine::nearness score{array<double, 1>{0.3, 1, 0.5, 2}};  // four dimensions
    const heed::verification report =
        heed::verify(attention{score, softmax{}, weighted_sum{}}, {.query = 4, .width = 4});
    std::printf("\n%s\n", report.text().c_str());
    course::holds("all contracts hold", bool(report));
}

// ## A mistake that verify finds
//
// Suppose that the scores of long sentences seem too large to you, and you divide them by the number of positions T. It
// compiles, and it trains.

namespace mine {

struct divided {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};

    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        using namespace heed;
        const double T = static_cast<double>(shape_of(keys)[1]);
        return ops::scale(ops::sum_last(ops::square(ops::subtract_per_position(keys, query))), -1 / T);
    }

    static auto parameters(auto&, auto&&) { return mine::divided{}; }
};

}  // namespace mine

// T is the length of the *longest* sentence of the batch, padding included. So the weights of a sentence depend on the
// rest of its batch: "small" gets 0.388 if the sentence is alone, and 0.361 in a batch with a sentence of six words.
// Such a model scores well in tests with one sentence at a time and worse in batches, and the cause is hard to see.
// `verify` sees it:

void found()
{
    const attention attend{mine::divided{}, softmax{}, weighted_sum{}};
    auto filled_up = heed::filled<double, 3>({1, 6, 2}, 99.0);  // three words, then garbage in the padding
    for (std::size_t i = 0; i < 6; ++i) filled_up.data()[i] = annotations.data()[i];
    const auto memory = attend.on(filled_up, heed::lengths{3});
    course::says("\nalone, small     ", weights_of(attend)(0, 0), 0.388);
    course::says("in a batch, small", attend.step(memory, query, attend.start(memory)).weights(0, 0), 0.361);

    const heed::verification report = heed::verify(attend, {.query = 2, .width = 2});
    std::string broken;
    for (const auto& contract : report.contracts) {
        if (!contract.passed) broken += "  " + contract.name + "\n";
    }
    std::printf("failed:\n%s", broken.c_str());
    course::holds("verify finds the mistake",
                  broken.find("a sentence has the same results alone and in a batch") != std::string::npos);
}

int main(int argc, char** argv)
{
    course::pictures_to(argc, argv);
    near_or_great();
    verified();
    found();
}

// Your own normalizer or combiner is just as short. Their optional members, such as a state between two steps, are
// listed at the top of `include/heed/policy/concepts.hpp`, with a signature for each; a misspelled member is a compile
// error that explains itself. Always verify your policy: it takes a second.
//
// ## Exercises
//
// Write your answers into `exercises/03.hpp`; `exercise_03` grades them with values and with verify.
//
// - **a.** The dot product and the distance are more closely related than they look. Write the score e_j = q · h_j - ½
//   |h_j|². With the softmax, its weights are those of -½ |q - h_j|². (Where did |q|² go?)
// - **b.** Write a normalizer: the softmax of scores that are limited to (-c, c), α = softmax(c tanh(e / c)). A
//   position that must not be seen, such as padding, is hidden by a score of minus infinity: the softmax gives it the
//   weight 0. But what is the tanh of minus infinity?
