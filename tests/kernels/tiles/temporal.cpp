// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/temporal.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/kernels/tiles/reference.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
namespace reference = tiles::reference;
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
    /// The gradient of L after a query, times ∂L' / ∂e or ∂L' / ∂L; and the gradient of u, times ∂u / ∂L.
    template <class V>
    static V share_of_score(V e, V after, V d)
    {
        return simd::exp(e - after) * d;
    }
    template <class V>
    static V share_of_past(V before, V after, V d)
    {
        return simd::select(tiles::hidden(before), V{}, simd::exp(before - after) * d);
    }
    template <class V>
    static V slope_of_past(V before, V d)
    {
        return simd::select(tiles::hidden(before), V{}, -d);
    }
};

template <class T>
constexpr double rounding = 300 * static_cast<double>(std::numeric_limits<T>::epsilon());
template <class T>
constexpr T lowest = -std::numeric_limits<T>::infinity();

const struct {
    std::size_t S, P;
} cases[] = {{1, 1}, {5, 9}, {60, 150}, {100, 20}, {2, 5000}};

constexpr auto all = [](std::size_t, std::size_t) { return true; };

/// Contexts of the queries [first, first + count) and the history after them.
template <class T>
std::vector<T> contexts_of(head_of_numbers<T>& x, std::size_t first, std::size_t count, std::vector<T>& history,
                           std::vector<T>& numbers)
{
    auto of = x.head();
    of.queries.data += first * x.A;
    of.queries_count = count;
    of.first_query = first;
    std::vector<T> contexts(count * x.D, T(9));
    numbers.assign(2 * count, T(9));
    const tiles::unmodified plain;
    const tiles::unmasked unmasked;
    const all_of_the_past past;
    tiles::with_registers<T>(1000, [&](auto registers) {
        tiles::forward_in_order<registers>(tiles::remembering_head{of, plain, unmasked, past},
                                           tiles::rows<T>{contexts.data(), x.D}, history.data(), numbers.data());
    });
    return contexts;
}

template <class T>
double distance(const std::vector<T>& is, const std::vector<double>& must)
{
    double worst = 0;
    for (std::size_t i = 0; i < must.size(); ++i) {
        const double off = std::fabs(static_cast<double>(is[i]) - must[i]) / (1 + std::fabs(must[i]));
        if (!(off <= worst)) worst = off;
    }
    return worst;
}

}  // namespace

TEST_CASE_TEMPLATE("queries in order: the definition, also in two calls", T, float, double)
{
    for (const auto& each : cases) {
        const std::size_t S = each.S, P = each.P;
        CAPTURE(S);
        CAPTURE(P);
        head_of_numbers<T> x(S, P, 3, 4);
        std::vector<T> history(P, lowest<T>), halves(P, lowest<T>), numbers;
        const auto contexts = contexts_of(x, 0, S, history, numbers);
        std::vector<double> must(contexts.size()), must_history(P, lowest<double>);
        reference::forward_in_order(x.head(), reference::past{}, all, tiles::rows<double>{must.data(), x.D},
                                    must_history);
        CHECK(distance(contexts, must) <= rounding<T>);
        CHECK(distance(history, must_history) <= rounding<T>);
        const auto first = contexts_of(x, 0, S / 2, halves, numbers),
                   second = contexts_of(x, S / 2, S - S / 2, halves, numbers);
        CHECK(halves == history);
        double apart = 0;
        for (std::size_t i = 0; i < contexts.size(); ++i) {
            const T half = i < first.size() ? first[i] : second[i - first.size()];
            apart = std::max(apart, std::fabs(static_cast<double>(half) - static_cast<double>(contexts[i])));
        }
        CHECK(apart <= rounding<T>);
    }
}

TEST_CASE_TEMPLATE("queries in order: gradients match the definition", T, float, double)
{
    for (const auto& each : cases) {
        const std::size_t S = each.S, P = each.P;
        CAPTURE(S);
        CAPTURE(P);
        head_of_numbers<T> x(S, P, 3, 4);
        const std::vector<T> before(P, lowest<T>), d_contexts = waves<T>(S * x.D, 5), d_after = waves<T>(P, 6);
        std::vector<T> history = before, numbers;
        const auto contexts = contexts_of(x, 0, S, history, numbers);
        std::vector<T> d_q(S * x.A), d_k(P * x.A), d_v(P * x.D), d_before(P);
        const tiles::head_gradients<T> to{{d_q.data(), x.A}, {d_k.data(), x.A}, {d_v.data(), x.D}};
        const tiles::forward_results<T> from{{contexts.data(), x.D}, numbers.data(), {d_contexts.data(), x.D}};
        const tiles::unmodified plain;
        const tiles::unmasked unmasked;
        const all_of_the_past past;
        tiles::with_registers<T>(1000, [&](auto registers) {
            tiles::backward_in_order<registers>(tiles::remembering_head{x.head(), plain, unmasked, past}, from,
                                                before.data(),
                                                tiles::history_gradients<T>{d_after.data(), d_before.data()}, to);
        });
        std::vector<double> must_q(d_q.size()), must_k(d_k.size()), must_v(d_v.size()),
            d_history(d_after.begin(), d_after.end());
        reference::backward_in_order(x.head(), reference::past{}, all, from.d_contexts,
                                     std::vector<double>(P, lowest<double>), d_history,
                                     {{must_q.data(), x.A}, {must_k.data(), x.A}, {must_v.data(), x.D}});
        CHECK(distance(d_q, must_q) <= 8 * rounding<T>);
        CHECK(distance(d_k, must_k) <= 8 * rounding<T>);
        CHECK(distance(d_v, must_v) <= 8 * rounding<T>);
        CHECK(distance(d_before, d_history) <= 8 * rounding<T>);
    }
}
