// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/temporal.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::head_of_numbers, test::waves;

namespace {

/// β = 1, δ = 0.
struct all_of_the_past {
    template <class V>
    static V modulated(V e, V L)
    {
        return simd::select(tiles::hidden(L), e, e - L);
    }
    template <class V>
    static V grown(V L, V e)
    {
        const V low = simd::min(e, L), high = simd::max(L, e);
        return simd::select(tiles::hidden(L), e, high + simd::log1p(simd::exp(low - high)));
    }
};

/// Contexts of the queries [first, first + count) and the history behind them.
template <class T>
std::vector<T> contexts_of(head_of_numbers<T>& x, std::size_t first, std::size_t count, std::vector<T>& history)
{
    auto of = x.head();
    of.queries.data += first * x.A;
    of.queries_count = count;
    of.first_query = first;
    std::vector<T> contexts(count * x.D, T(9)), numbers(2 * count);
    tiles::with_registers<T>(1000, [&](auto registers) {
        tiles::forward_in_order<registers>(of, tiles::unmodified{}, tiles::unmasked{}, all_of_the_past{},
                                           tiles::rows<T>{contexts.data(), x.D}, history.data(), numbers.data());
    });
    return contexts;
}

}  // namespace

TEST_CASE_TEMPLATE("queries in their order: the definition, also in two calls", T, float, double)
{
    const double rounding = 300 * static_cast<double>(std::numeric_limits<T>::epsilon());
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const struct {
        std::size_t S, P;
    } cases[] = {{1, 1}, {5, 9}, {60, 150}, {100, 20}, {2, 5000}};
    for (const auto& each : cases) {
        const std::size_t S = each.S, P = each.P;
        CAPTURE(S);
        CAPTURE(P);
        head_of_numbers<T> x(S, P, 3, 4);
        std::vector<T> history(P, lowest), halves(P, lowest);
        const auto contexts = contexts_of(x, 0, S, history);
        std::vector<double> past(P, 0);  // Σ exp e
        double worst = 0;
        for (std::size_t s = 0; s < S; ++s) {
            std::vector<double> w(P), c(x.D, 0);
            double sum = 0;
            for (std::size_t j = 0; j < P; ++j) {
                w[j] = std::exp(x.score(s, j)) / (s == 0 ? 1 : past[j]);
                sum += w[j];
                past[j] += std::exp(x.score(s, j));
            }
            for (std::size_t j = 0; j < P; ++j)
                for (std::size_t i = 0; i < x.D; ++i) c[i] += w[j] / sum * static_cast<double>(x.values[j * x.D + i]);
            for (std::size_t i = 0; i < x.D; ++i)
                worst = std::max(worst, std::fabs(static_cast<double>(contexts[s * x.D + i]) - c[i]));
        }
        for (std::size_t j = 0; j < P; ++j)
            worst = std::max(worst, std::fabs(static_cast<double>(history[j]) - std::log(past[j])) /
                                        (1 + std::fabs(std::log(past[j]))));
        CHECK(worst <= rounding);
        const auto first = contexts_of(x, 0, S / 2, halves), second = contexts_of(x, S / 2, S - S / 2, halves);
        CHECK(halves == history);
        double apart = 0;
        for (std::size_t i = 0; i < contexts.size(); ++i) {
            const T half = i < first.size() ? first[i] : second[i - first.size()];
            apart = std::max(apart, std::fabs(static_cast<double>(half) - static_cast<double>(contexts[i])));
        }
        CHECK(apart <= rounding);
    }
}
