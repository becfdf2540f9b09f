// SPDX-License-Identifier: BSD-3-Clause
//
// sharpness: the curvature of a loss during training of attention.
//
// Gradient descent with rate η on a quadratic function scales the component along an eigenvector of the Hessian by 1 -
// ηλ per step: it diverges if an eigenvalue λ is above 2/η. Losses of networks are not quadratic. Cohen et al. 2021
// observed that the largest eigenvalue, the sharpness, rises during training up to 2/η, and stays there: "the edge of
// stability".
//
// The largest eigenvalue of a matrix of thousands by thousands is required. The matrix is never stored: power iteration
// only multiplies by it, and a product costs about three gradients.
//
// test: 300

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include <heed/heed.hpp>
#include <heed/nn/init.hpp>

using namespace heed;

namespace {

// 1. The task: a sentence is a list of pairs, a name and a color; the query is a name; the answer is its color.

constexpr std::size_t names = 12, colors = 6, pairs = 8, sentences = 64, hidden = 24;

struct lookups {
    array<double, 3> annotations = filled<double, 3>({sentences, pairs, names + colors}, 0.0);  // [B,T,D], two ones
    array<double, 2> queries = filled<double, 2>({sentences, names}, 0.0);                      // [B,Q], a one
    ops::expected_words<double> answers{word_ids(1, sentences), std::vector<double>(sentences, 1.0 / sentences)};

    explicit lookups(std::uint64_t seed)
    {
        for (std::size_t b = 0; b < sentences; ++b) {
            for (std::size_t j = 0; j < pairs; ++j) {
                const std::size_t name = (b * 5 + j * 7) % names;  // no repeated names
                const std::size_t color = mix(seed + b * pairs + j) % colors;
                annotations(b, j, name) = annotations(b, j, names + color) = 1;
                if (j != mix(seed * 31 + b) % pairs) continue;
                queries(b, name) = 1;
                answers.words(0, b) = static_cast<std::uint32_t>(color);
            }
        }
    }
};

// 2. The model: RNNsearch's attention and one layer. Its loss is written with `auto`, so it accepts a tape of any
// number type.

template <class Attend, class Matrix, class Vector>
struct reader {
    Attend attend;
    Matrix W;  // [D,colors]
    Vector b;  // [colors]

    auto loss(const lookups& task) const
    {
        const auto memory = attend.on(task.annotations);
        const auto found = attend.step(memory, task.queries, attend.start(memory));
        return ops::cross_entropy(ops::linear(found.context, W, b), task.answers);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return reader<decltype(visit("attend", self.attend)), decltype(visit("W", self.W)),
                      decltype(visit("b", self.b))>{visit("attend", self.attend), visit("W", self.W),
                                                    visit("b", self.b)};
    }
};

auto make_reader(random_source random)
{
    const attention attend{score::additive{nn::glorot<double>(random, names, hidden),
                                           nn::glorot<double>(random, names + colors, hidden),
                                           nn::zeros<double>(hidden)},
                           normalize::softmax{}, combine::weighted_sum{}};
    return reader<std::remove_cv_t<decltype(attend)>, array<double, 2>, array<double, 1>>{
        attend, nn::glorot<double>(random, names + colors, colors), nn::zeros<double>(colors)};
}

// 3. Operations on all parameters: they are a list of rows of numbers.

/// y += factor · x
void add_scaled(auto& y, double factor, auto& x)
{
    const auto to = numbers_of<double>(y), from = numbers_of<double>(x);
    for (std::size_t i = 0; i < to.size(); ++i) {
        for (std::size_t k = 0; k < to[i].numbers.size(); ++k)
            to[i].numbers.data[k] += factor * from[i].numbers.data[k];
    }
}
double inner(auto& x, auto& y)
{
    double sum = 0;
    const auto a = numbers_of<double>(x), b = numbers_of<double>(y);
    for (std::size_t i = 0; i < a.size(); ++i) {
        for (std::size_t k = 0; k < a[i].numbers.size(); ++k) sum += a[i].numbers.data[k] * b[i].numbers.data[k];
    }
    return sum;
}

// 4. Power iteration: v ← H v / |H v|. If λ is the largest eigenvalue by magnitude, vᵀ H v converges to λ.

/// The sharpness; `v` is the initial vector, and becomes the eigenvector.
double sharpness(ad::tape<dual_number<double>>& tape, const auto& loss, const auto& model, auto& v, int rounds)
{
    double eigenvalue = 0;
    for (int round = 0; round < rounds; ++round) {
        auto [value, gradient, product] = ad::hessian_vector(tape, loss, model, v);
        eigenvalue = inner(v, product);
        const double length = std::sqrt(inner(product, product));
        add_scaled(v, -1, v);
        add_scaled(v, 1 / length, product);
    }
    return eigenvalue;
}

// 5. Gradient descent, and the sharpness at eleven points.

std::vector<double> trained(const lookups& task, double rate, int steps)
{
    const auto loss = [&](auto&, const auto& model) { return model.loss(task); };
    auto model = make_reader(random_source{3, 0});
    auto v = make_reader(random_source{4, 0});  // any initial direction; the previous one afterwards
    ad::tape<double> tape;
    ad::tape<dual_number<double>> tape_of_duals;
    std::vector<double> found;
    for (int step = 0; step <= steps; ++step) {
        if (step % (steps / 10) == 0)
            found.push_back(sharpness(tape_of_duals, loss, model, v, found.empty() ? 100 : 20));
        tape.clear();
        std::vector<ad::named_variable<double>> all;
        tape.backward(loss(tape, ad::lift(tape, model, all)));
        const auto parameters = numbers_of<double>(model);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto gradient = tape.gradient(all[i].numbers);
            for (std::size_t k = 0; k < gradient.size(); ++k) parameters[i].numbers.data[k] -= rate * gradient.data[k];
        }
    }
    return found;
}

}  // namespace

int main(int argc, char** argv)
{
    const int steps = argc > 1 ? std::max(10, std::atoi(argv[1])) : 4000;
    const lookups task(7);
    const std::vector<double> rates{0.25, 0.5, 1};
    std::vector<std::vector<double>> sharp;
    for (const double rate : rates) sharp.push_back(trained(task, rate, steps));
    std::printf("the largest eigenvalue of the Hessian (%zu x %zu)\n\n  step", parameter_count(make_reader({3, 0})),
                parameter_count(make_reader({3, 0})));
    for (const double rate : rates) std::printf("  rate %-5g", rate);
    std::printf("\n");
    for (std::size_t i = 0; i < sharp.front().size(); ++i) {
        std::printf("%6d", static_cast<int>(i) * (steps / 10));
        for (const auto& column : sharp) std::printf("  %10.2f", column[i]);
        std::printf("\n");
    }
    std::printf("2/rate");
    for (const double rate : rates) std::printf("  %10.2f", 2 / rate);
    std::printf("\n");
    return 0;
}
