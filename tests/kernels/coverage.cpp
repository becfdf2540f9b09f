// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/coverage.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include <support/kernels.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

template <class T>
struct coverage_case {
    std::size_t B, P, N;
    list<T> word, weights, by_weight, products, coverage;

    coverage_case(std::size_t batch, std::size_t positions, std::size_t width)
        : B(batch),
          P(positions),
          N(width),
          word(some<T>(B * 3 * N, 1)),
          weights(some<T>(B * P, 2)),
          by_weight(some<T>(3 * N, 3)),
          products(some<T>(B * P * 3 * N, 4)),
          coverage(some<T>(B * P * N, 5))
    {}

    coverage_step<T> step() const
    {
        return {B, P, N, word.data(), weights.data(), by_weight.data(), products.data(), coverage.data()};
    }
    list<T> next() const
    {
        list<T> result(B * P * N, T(9));
        coverage_update(step(), result.data());
        return result;
    }
};

}  // namespace

TEST_CASE_TEMPLATE("coverage: plain loops agree, with any number of threads", T, float, double)
{
    for (const std::size_t N : widths) {
        const coverage_case<T> x(3, 4, N);
        list<double> want(x.coverage.size());
        for (std::size_t i = 0; i < x.B * x.P; ++i) {
            for (std::size_t n = 0; n < N; ++n) {
                const auto of = [&](const list<T>& rows, std::size_t row, std::size_t part) {
                    return static_cast<double>(rows[row * 3 * N + part * N + n]);
                };
                const double a = static_cast<double>(x.weights[i]), c = static_cast<double>(x.coverage[i * N + n]);
                const auto sum = [&](std::size_t part) {
                    return of(x.word, i / x.P, part) + a * of(x.by_weight, 0, part);
                };
                const double z = test::sigmoid(sum(0) + of(x.products, i, 0)),
                             r = test::sigmoid(sum(1) + of(x.products, i, 1));
                want[i * N + n] = z * c + (1 - z) * std::tanh(sum(2) + r * of(x.products, i, 2));
            }
        }
        CHECK(far(x.next(), want) <= few_roundings<T>);
    }
    const coverage_case<T> many(9, 30, 130);
    const list<T> alone = many.next();
    const with_threads scope(3);
    CHECK(same_bits(many.next(), alone));
}

TEST_CASE("coverage: gradients, also separately")
{
    coverage_case<double> x(2, 3, 5);
    const list<double> g = some<double>(x.coverage.size(), 9);
    const auto loss = [&] { return test::dot(x.next(), g); };
    list<double> word(x.word.size(), 0.5), weights(x.weights.size(), 0.5), by_weight(x.by_weight.size(), 0.5),
        products(x.products.size(), 0.5), coverage(x.coverage.size(), 0.5);
    const auto back = [&](const coverage_adjoints<double>& into) {
        coverage_update_backward(x.step(), g.data(), into);
    };
    back({word.data(), weights.data(), by_weight.data(), products.data(), coverage.data()});
    check_gradient("word", x.word, loss, word, 0.5);
    check_gradient("weights", x.weights, loss, weights, 0.5);
    check_gradient("by_weight", x.by_weight, loss, by_weight, 0.5);
    check_gradient("products", x.products, loss, products, 0.5);
    check_gradient("coverage", x.coverage, loss, coverage, 0.5);
    list<double> alone(by_weight.size(), 0.5);
    back({nullptr, nullptr, alone.data(), nullptr, nullptr});
    CHECK(same_bits(alone, by_weight));
    list<double> of_word(word.size(), 0.5);
    back({of_word.data(), nullptr, nullptr, nullptr, nullptr});
    CHECK(same_bits(of_word, word));
}
