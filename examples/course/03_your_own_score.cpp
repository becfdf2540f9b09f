// SPDX-License-Identifier: BSD-3-Clause
// test: --out .

// # 3. A score of your own, and verify
//
// The dot product has a preference: long annotations. "small" is half a thing, (0.5, 0), and "cats" a whole one,
// (1, 0). No query of the form (x, 0) with x > 0 ever scores "small" above "cats", not even (0.5, 0), which is "small"
// itself. With that query the dot product gives "small" 0.326 and "cats" 0.419.
//
// We want a score that asks "how near?" instead of "how long?". There is none by that name in heed. We write one.

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
// The score is the squared distance of query and annotation, negative, so that the nearest has the highest score. Each
// dimension d has a factor w_d, which says how much it matters:
//
//     e_j = -Σ_d w_d (q_d - h_{j,d})²
//
// A score is a struct with three members:
//
// - `weights`: the kind of its weights. One for each position, here.
// - `operator()`: from queries `[B,Q]` and keys `[B,T,D]` to scores `[B,T]`, for a whole batch at once. It is written
//   in heed's operations, `ops::…`, never in loops. This is what makes it work on numbers and, in training, on
//   variables that know their gradient (step 5). `heed::tensor auto` stands for both.
// - `parameters`: what can be learned, each with a name. `visit` is called with each; what it returns makes a policy
//   of the same kind, with variables in place of numbers, for instance. (`mine::nearness{…}` finds out that kind;
//   `nearness{…}` alone would mean the very struct that we are in.)

namespace mine {

template <class Vector>
struct nearness {
    Vector w;  // [D]
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};

    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        using namespace heed;
        const auto apart = ops::square(ops::subtract_per_position(keys, query));  // [B,T,D]: keys - query, for each key
        return ops::scale(ops::matvec(apart, w), -1);                             // [B,T]
    }

    static auto parameters(auto& self, auto&& visit) { return mine::nearness{visit("w", self.w)}; }
};
template <class Vector>
nearness(Vector) -> nearness<Vector>;  // clang before 17 cannot deduce this itself

}  // namespace mine

// It takes the place of any other score. Asked for (0.5, 0), it now gives "small" the most, 0.484, and "cats" 0.377.
// With factors of 10 it is surer: 0.924 and 0.076. In the picture each word asks with its own annotation, first by the
// dot product, then by nearness with 10: there, "small" finds "cats"; here, each word finds itself.
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
// Three words say little. Does it work for sentences of different lengths in one batch? A tensor is a rectangle, so
// behind the short ones there is **padding**. What if it contains rubbish? Is the derivative right? heed has a list of
// such contracts, and `verify` tries each of them on a mechanism of doubles, with any sizes that fit its parameters. It
// prints a line for each: whether it is kept, and what was tried.

void verified()
{
    const mine::nearness score{array<double, 1>{0.3, 1, 0.5, 2}};  // four dimensions
    const heed::verification report =
        heed::verify(attention{score, softmax{}, weighted_sum{}}, {.query = 4, .width = 4});
    std::printf("\n%s\n", report.text().c_str());
    course::holds("all kept", bool(report));
}

// ## What it finds
//
// Somebody finds the scores of long sentences too large, and divides them by the number of positions T. It compiles,
// and it trains.

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

// T is the length of the *longest* sentence of the batch, padding included. So the weights of a sentence depend on its
// neighbors: "small" gets 0.388 if the sentence is alone, and 0.361 in a batch with one of six words.
// Such a model scores well in tests with sentences one by one, and worse in batches, and nobody knows why. verify does:

void found()
{
    const attention attend{mine::divided{}, softmax{}, weighted_sum{}};
    auto filled_up = heed::filled<double, 3>({1, 6, 2}, 99.0);  // three words, and rubbish behind them
    for (std::size_t i = 0; i < 6; ++i) filled_up.data()[i] = annotations.data()[i];
    const auto memory = attend.on(filled_up, heed::lengths{3});
    course::says("\nalone, small     ", weights_of(attend)(0, 0), 0.388);
    course::says("in a batch, small", attend.step(memory, query, attend.start(memory)).weights(0, 0), 0.361);

    const heed::verification report = heed::verify(attend, {.query = 2, .width = 2});
    std::string broken;
    for (const auto& contract : report.contracts) {
        if (!contract.passed) broken += "  " + contract.name + "\n";
    }
    std::printf("broken:\n%s", broken.c_str());
    course::holds("found", broken.find("a sentence has the same results alone and in a batch") != std::string::npos);
}

int main(int argc, char** argv)
{
    course::pictures_to(argc, argv);
    near_or_great();
    verified();
    found();
}

// A normalizer or combiner of your own is as short. What it may have besides, such as state between two steps, is
// listed at the head of `include/heed/policy/concepts.hpp`, with a signature for each; a misspelled member is
// refused with a sentence. Whatever you write, verify it: it takes a second.
//
// ## Exercises
//
// Write into `exercises/03.hpp`; `exercise_03` grades it with values and with verify.
//
// - **a.** The dot product and the distance are nearer to each other than they look. Write the score
//   e_j = q · h_j - ½ |h_j|². Under the softmax its weights are those of -½ |q - h_j|². (Where did |q|² go?)
// - **b.** Write a normalizer: the softmax of scores that cannot leave (-c, c), α = softmax(c tanh(e / c)). A position
//   that must not be seen, such as padding, is hidden by a score of minus infinity: the softmax gives it the weight 0.
//   Mind what tanh makes of minus infinity.
