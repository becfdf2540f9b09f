// SPDX-License-Identifier: BSD-3-Clause
//
// A user's program in one file, with xtensor's headers and without a BLAS:
//
//     g++ -std=c++20 -Iinclude -DHEED_BLAS_NONE program.cpp
//
// A step of additive attention and its gradient must be correct. Prints the errors and then returns 1.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/nn/init.hpp>

using namespace heed;

namespace {

constexpr std::size_t B = 20, T = 9, Q = 30, D = 40, A = 50;
const lengths of_sentences(std::vector<std::size_t>{9, 7, 9, 1, 3, 9, 8, 5, 9, 2, 4, 6, 9, 9, 7, 0, 3, 8, 9, 5});

/// Σ context², by loops.
double by_loops(const array<double, 2>& W, const array<double, 2>& U, const array<double, 1>& v,
                const array<double, 2>& s, const array<double, 3>& h)
{
    double all = 0;
    for (std::size_t b = 0; b < B; ++b) {
        double weight[T] = {}, sum = 0, context[D] = {};
        for (std::size_t t = 0; t < of_sentences[b]; ++t) {
            double e = 0;
            for (std::size_t a = 0; a < A; ++a) {
                double inner = 0;
                for (std::size_t q = 0; q < Q; ++q) inner += s(b, q) * W(q, a);
                for (std::size_t d = 0; d < D; ++d) inner += h(b, t, d) * U(d, a);
                e += v(a) * std::tanh(inner);
            }
            weight[t] = std::exp(e);
            sum += weight[t];
        }
        for (std::size_t t = 0; t < of_sentences[b]; ++t)
            for (std::size_t d = 0; d < D; ++d) context[d] += weight[t] / sum * h(b, t, d);
        for (const double c : context) all += c * c;
    }
    return all;
}

}  // namespace

int main()
{
    random_source random{1};
    auto W = nn::glorot<double>(random, Q, A);
    const auto U = nn::glorot<double>(random, D, A);
    const auto v = nn::small_vector<double>(random, A);
    array<double, 2> s({B, Q});
    array<double, 3> h({B, T, D});
    for (std::size_t i = 0; i < s.size(); ++i) s.data()[i] = normal(7, i);
    for (std::size_t i = 0; i < h.size(); ++i) h.data()[i] = normal(8, i);

    int wrong = 0;
    const auto near = [&](double is, double right, double tolerance, const char* what) {
        if (std::fabs(is - right) <= tolerance * std::fabs(right)) return;
        wrong = 1;
        std::printf("%s: %.12g, right is %.12g\n", what, is, right);
    };

    const attention plain{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = plain.on(h, of_sentences);
    const auto step = plain.step(memory, s, plain.start(memory));
    double all = 0;
    for (std::size_t i = 0; i < step.context.size(); ++i) all += step.context.data()[i] * step.context.data()[i];
    near(all, by_loops(W, U, v, s, h), 1e-12, "the sum of the squares of the context");

    ad::tape<double> tape;
    const auto taped = ad::lift(tape, plain);
    const auto taped_memory = taped.on(h, of_sentences);
    const auto context = taped.step(taped_memory, s, taped.start(taped_memory)).context;
    tape.backward(ops::dot(context, context));
    const auto gradient = tape.gradient(taped.score.W);
    for (const std::size_t i : {std::size_t{0}, A + 3, Q * A - 1}) {
        const double before = W.data()[i], width = 1e-3;
        const auto at = [&](double steps) {
            W.data()[i] = before + steps * width;
            return by_loops(W, U, v, s, h);
        };
        const double difference = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * width);
        W.data()[i] = before;
        near(gradient.data[i], difference, 1e-6, "the gradient of a weight");
    }
    return wrong;
}
