// SPDX-License-Identifier: BSD-3-Clause
// test: --out .

// # 5. The backward pass
//
// Attention learns because we can compute, for every number in it: if this number grew a little, would the result be
// better or worse, and by how much? The answer is the **gradient**. The *backward pass* computes it, in forty lines of
// code. Here they are, then heed's way to the same numbers, and three ways to check both.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/dot.hpp>

#include "course.hpp"
#include "graph.hpp"

// ## The smallest attention
//
// Two words with one number each, h₁ = 1 and h₂ = -1, a query q = 0.5, and a context c with a goal of 1. The **loss**
// measures how far c is from its goal. The function is a template: we run it with three types of numbers.
//
//     e_j = q h_j,  α = softmax(e),  c = α₁ h₁ + α₂ h₂,  ℓ = (c - goal)²

auto loss(const auto& q, const auto& h1, const auto& h2, const auto& goal)
{
    using std::exp;
    const auto x1 = exp(q * h1), x2 = exp(q * h2);
    const auto sum = x1 + x2;
    const auto c1 = x1 / sum * h1, c2 = x2 / sum * h2;
    const auto d = c1 + c2 - goal;
    return d * d;
}

// ## A tape
//
// A **tape** records every operation as it happens: the numbers that it reads, its result, and the *slope* of the
// result with respect to each of these numbers. For y = a · b, the slopes are b and a; for y = exp(a), y itself.
//
// Then comes the **chain rule**: if ℓ grows by 5 for each unit of y, and y by 3 for each unit of a, then ℓ grows by 15
// for each unit of a. Begin at the end, with ∂ℓ/∂ℓ = 1, and go backward, entry by entry:
//
//     gradient of a  +=  gradient of y · slope of y with respect to a
//
// Why `+=`? A number that is read twice changes ℓ twice, and the changes add up. Why is this order right? An operation
// is recorded after all that it reads; so, going backward, all operations that read a number come first.

struct entry {
    std::string name;
    double value;
    std::vector<std::pair<std::size_t, double>> from = {};  // the entries that it reads, and the slopes
    double gradient = 0;
};

struct tape {
    std::vector<entry> entries;

    void backward()
    {
        entries.back().gradient = 1;
        for (std::size_t i = entries.size(); i-- > 0;)
            for (const auto& [a, slope] : entries[i].from) entries[a].gradient += entries[i].gradient * slope;
    }
};

struct number {  // an entry of a tape
    tape* on;
    std::size_t at;
    double value;
};

number write(tape* on, const entry& e) { return on->entries.push_back(e), number{on, on->entries.size() - 1, e.value}; }
number operator+(number a, number b) { return write(a.on, {"+", a.value + b.value, {{a.at, 1}, {b.at, 1}}}); }
number operator-(number a, number b) { return write(a.on, {"-", a.value - b.value, {{a.at, 1}, {b.at, -1}}}); }
number operator*(number a, number b)
{
    return write(a.on, {"·", a.value * b.value, {{a.at, b.value}, {b.at, a.value}}});
}
number operator/(number a, number b)
{
    const double y = a.value / b.value;
    return write(a.on, {"/", y, {{a.at, 1 / b.value}, {b.at, -y / b.value}}});
}
number exp(number a) { return write(a.on, {"exp", std::exp(a.value), {{a.at, std::exp(a.value)}}}); }

tape recorded(double q)
{
    tape on;
    const number query = write(&on, {"q", q}), h1 = write(&on, {"h₁", 1}), h2 = write(&on, {"h₂", -1});
    loss(query, h1, h2, write(&on, {"goal", 1}));
    on.backward();
    return on;
}

// ## Reading the graph
//
// That is the whole tape. `course::draw` draws its entries: each with its number, value and, in brackets, gradient;
// below it, the entries that it reads. (`--out DIR` writes the drawing to `graph.svg`.) The loss is at the top:
//
//     #15 · = 0.289 [1.000]
//     ├─ #14 - = -0.538 [-1.076]
//     │  ├─ #13 + = 0.462 [-1.076]
//     │  │  ├─ #10 · = 0.731 [-1.076]
//     │  │  │  ├─ #9 / = 0.731 [-1.076]
//     │  │  │  │  ├─ #5 exp = 1.649 [-0.257]
//     │  │  │  │  │  └─ #4 · = 0.500 [-0.423]
//     │  │  │  │  │     ├─ #0 q = 0.500 [-0.846]
//
// The loss is d · d, so the gradient of d is 2d = 2 · (-0.538) = -1.076. The difference and the sum pass it on
// unchanged. At the end, ∂ℓ/∂q = -0.846: if q grows a little, the loss falls 0.846 times as much. And h₁ is read twice:
// as a key that is compared, -0.212, and as a value that is summed, -0.786. The tape adds the two: -0.998. Now take a
// hundred steps downhill, q := q - ∂ℓ/∂q, and the loss is 0.001 instead of 0.289. This is training.

void on_our_tape()
{
    const tape on = recorded(0.5);
    course::draw(on.entries);
    course::says("\nloss", on.entries.back().value, 0.289);
    course::says("gradient of d", on.entries[14].gradient, -1.076);
    course::says("∂ℓ/∂q ", on.entries[0].gradient, -0.846);
    course::says("∂ℓ/∂h₁", on.entries[1].gradient, -0.998);
    course::says("  as a key  ", on.entries[4].gradient * on.entries[0].value, -0.212);
    course::says("  as a value", on.entries[10].gradient * on.entries[9].value, -0.786);

    double q = 0.5;
    for (int step = 0; step < 100; ++step) q -= recorded(q).entries[0].gradient;
    course::says("the loss after a hundred steps", recorded(q).entries.back().value, 0.001);
}

// ## heed's tape
//
// The idea is the same, with tensors (arrays with any number of axes) instead of numbers: one entry is a matrix
// product instead of a thousand multiplications. `include/heed/ad/tape.hpp` explains it from the beginning. Variables
// made by `parameter` work wherever arrays do. The attention is that of step 1; `read` is `step` without the weights.

void on_heeds_tape()
{
    using namespace heed;
    const array<double, 2> q{{0.5}}, goal{{1.0}};  // [1,1]
    const array<double, 3> h{{{1.0}, {-1.0}}};     // [1,2,1]
    ad::tape<double> on;
    const auto query = on.parameter(q);
    const auto annotations = on.parameter(h);
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    const auto context = attend.read(memory, query, attend.start(memory)).context;
    const auto apart = ops::subtract(context, goal);
    on.backward(ops::dot(apart, apart));
    course::says("heed: ∂ℓ/∂q ", on.gradient(query).data[0], -0.846);
    course::says("heed: ∂ℓ/∂h₁", on.gradient(annotations).data[0], -0.998);
}

// ## Is a gradient right? Three ways to know
//
// A wrong gradient rarely crashes a program. The model still learns, only worse. So check:
//
// 1. **Finite differences**: move q a little up and down, (ℓ(q + ε) - ℓ(q - ε)) / 2ε. This needs only the loss. With ε
//    = 10⁻⁵, nine digits agree. A large ε is inexact, since ℓ is curved; a tiny one loses all digits to rounding.
// 2. A **dual number** carries its slope along: (x + x' ε)(y + y' ε) = x y + (x' y + x y') ε, where ε² = 0. Run the
//    loss with q + 1ε: the factor of ε in the result is the gradient, to the last digits.
// 3. **By hand**, if the formula is simple. Here c = (e^q - e^-q) / (e^q + e^-q) = tanh q, so ℓ = (tanh q - 1)², and
//    ∂ℓ/∂q = 2 (tanh q - 1) (1 - tanh² q).

void three_checks()
{
    const double by_hand = 2 * (std::tanh(0.5) - 1) * (1 - std::tanh(0.5) * std::tanh(0.5));
    const double dual = loss(heed::dual_number<double>{0.5, 1}, 1.0, -1.0, 1.0).slope;
    const auto at = [](double q) { return loss(q, 1.0, -1.0, 1.0); };
    const auto difference = [&](double e) { return (at(0.5 + e) - at(0.5 - e)) / (2 * e); };
    course::says("by hand", by_hand, -0.846);
    course::says("a dual number", dual, -0.846);
    course::says("finite differences", difference(1e-5), -0.846);
    course::holds("dual number and formula agree to 14 digits", std::abs(dual - by_hand) < 1e-14);
    course::holds("differences and formula agree to 9 digits", std::abs(difference(1e-5) - by_hand) < 1e-9);
    course::holds("a step of 0.1 is too large, one of 10⁻¹⁵ too small",
                  std::abs(difference(0.1) - by_hand) > 1e-3 && std::abs(difference(1e-15) - by_hand) > 1e-3);
}

int main(int argc, char** argv)
{
    course::pictures_to(argc, argv);
    on_our_tape();
    on_heeds_tape();
    three_checks();
}

// ## Exercises
//
// `ad::grad_check` runs check 1 for every parameter of a model, and so does `verify` of step 3. Write your answers into
// `exercises/05.hpp`; `exercise_05` grades them.
//
// - **a.** The backward pass of the softmax: from the weights α and their gradients, compute the gradients of the
//   scores. (If e_j grows, α_j grows and all others shrink: ∂α_k/∂e_j = α_k (1 if k = j, else 0) - α_k α_j.)
// - **b.** An operation for heed's tape: softplus, y = log(1 + eˣ), with its backward pass.
