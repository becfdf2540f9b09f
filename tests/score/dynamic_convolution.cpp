// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t N = 4;

auto convolves(const auto& score) { return attention{score, normalize::retention{}, combine::weighted_sum{}}; }
auto dynamic(std::size_t K, score::kernel_over side = score::kernel_over::both_sides)
{
    return score::dynamic_convolution{random({N, K}, 21), side};
}

/// softmax(scores)
std::vector<double> shares(std::vector<double> x)
{
    double sum = 0;
    for (double& v : x) sum += v = std::exp(v);
    for (double& v : x) v /= sum;
    return x;
}

/// o_i = Σ_k w_{i,k} x_{i + k − own}, with 0 beyond the n words; k counts from 0.
double by_hand(const array<double, 3>& x, std::size_t b, std::size_t i, std::size_t n, std::size_t own, std::size_t c,
               const std::vector<double>& w)
{
    double sum = 0;
    for (std::size_t k = 0; k < w.size(); ++k)
        if (i + k >= own && i + k - own < n) sum += w[k] * x(b, i + k - own, c);
    return sum;
}

}  // namespace

TEST_CASE("the paper's sum, for odd and even widths, both sides and the past, dynamic and lightweight")
{
    const std::size_t T = 7;
    const auto h = random({2, T, N}, 1), q = random({2, T, N}, 2);
    const lengths real{T, 4};
    for (const std::size_t K : {1u, 3u, 4u, 15u}) {
        for (const auto side : {score::kernel_over::both_sides, score::kernel_over::past}) {
            // x_{i + k − ⌈(K+1)/2⌉} with k from 1
            const std::size_t own = side == score::kernel_over::past ? K - 1 : (K + 2) / 2 - 1;
            const auto attend = convolves(dynamic(K, side));
            const auto c = attend(attend.on(h, real), q);
            const auto w = random({K}, 5);
            const auto light = convolves(score::lightweight_convolution{w, side});
            const auto d = light(light.on(h, real), q);
            for (std::size_t b = 0; b < 2; ++b) {
                for (std::size_t i = 0; i < real[b]; ++i) {
                    std::vector<double> of_query(K, 0.0);
                    for (std::size_t k = 0; k < K; ++k)
                        for (std::size_t n = 0; n < N; ++n) of_query[k] += q(b, i, n) * attend.score.W(n, k);
                    for (std::size_t n = 0; n < N; ++n) {
                        CHECK(c(b, i, n) == support::approx(by_hand(h, b, i, real[b], own, n, shares(of_query))));
                        CHECK(d(b, i, n) ==
                              support::approx(by_hand(h, b, i, real[b], own, n, shares({w.begin(), w.end()}))));
                    }
                }
            }
        }
    }
}

TEST_CASE("all at once, one by one, over a growing memory, and in windows")
{
    const std::size_t T = 12;
    const auto h = random({2, T, N}, 1), q = random({2, T, N}, 2);
    const auto past = score::kernel_over::past;
    const auto check = [&](const auto& attend) {
        CHECK(support::distance_from_one_by_one(attend, causal{}, lengths{T, 5, 0}, T, T) < 1e-12);
        const auto all = attend(attend.on(h), q, causal{});
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}})
            CHECK(support::distance_where_it_grows(attend, h, q, all, chunk) < 1e-12);
    };
    check(convolves(dynamic(3, past)));
    check(convolves(score::lightweight_convolution{random({3}, 5), past}));
    check(attention{dynamic(5), normalize::ratio{}, combine::weighted_sum{}});
    // The result is the same if only the kernel's window is computed.
    const auto whole = convolves(dynamic(5));
    const attention window{dynamic(5), normalize::local_m{2, normalize::retention{}}, combine::weighted_sum{}};
    const auto a = whole(whole.on(h), q), b = window(window.on(h), q);
    CHECK(support::distance(a, b) < 1e-12);
    // Each sentence of a KV cache has its own query position: both attend to their second-to-last word.
    const attention before{score::lightweight_convolution{array<double, 1>{0, 50, 0}, past}, normalize::retention{},
                           combine::weighted_sum{}};
    auto state = before.start(before.on(h));
    state.step = T - 1;
    const auto seen = before.step(with_cache(before.on(h, lengths{T, 5})), ops::step_of(q, 0), state).weights;
    CHECK(seen(0, T - 2) == support::approx(1));
    CHECK(seen(1, 3) == support::approx(1));
}

TEST_CASE("gradients with respect to annotations, queries and kernels; heads; the contracts; errors")
{
    const auto f = [&](const auto& h, const auto& q, const auto& W, const auto& w) {
        const auto a = convolves(score::dynamic_convolution{W});
        const attention b{score::lightweight_convolution{w}, normalize::ratio{}, combine::weighted_sum{}};
        return ops::add(a(a.on(h), q), b(b.on(h), q, causal{}));
    };
    const auto some = [&]<unsigned mask>(std::integral_constant<unsigned, mask>) {
        const auto found = support::gradient_of<mask>(f, random({2, 5, 2}, 1), random({2, 5, 2}, 2), random({2, 3}, 3),
                                                      random({4}, 4));
        CHECK_MESSAGE(bool(found), found.text());
    };
    some(std::integral_constant<unsigned, 0b1111>{});  // all on the tape
    some(std::integral_constant<unsigned, 0b1100>{});  // the kernels alone
    some(std::integral_constant<unsigned, 0b0010>{});  // the queries alone
    some(std::integral_constant<unsigned, 0b0001>{});  // the annotations alone
    const lengths up_to{3, 2}, begin{0, 1};
    const auto op = [&](const auto& w) { return ops::at_distances(w, std::size_t{1}, std::size_t{4}, up_to, begin); };
    CHECK_GRADIENT(op, random({2, 3}, 1));
    const auto y = op(array<double, 2>{{1, 2, 3}, {4, 5, 6}});
    CHECK(y == array<double, 2>{{0, 1, 2, 3}, {5, 6, 0, 0}});  // query 2 over keys from 0, query 1 over keys from 1

    // Positions beyond the sentence or the kernel are not read.
    auto h = random({1, 6, N}, 1);
    const auto q = random({1, 6, N}, 2);
    const auto attend = convolves(dynamic(3));
    const auto before = attend(attend.on(h, lengths{4}), q);
    h(0, 5, 0) = std::numeric_limits<double>::quiet_NaN();
    CHECK(attend(attend.on(h, lengths{4}), q) == before);

    const auto words = random({2, 9, N}, 1), queries = random({2, 9, N}, 2);
    const multi_head heads{std::vector{convolves(score::dynamic_convolution{random({3, 3}, 8)}),
                                       convolves(score::dynamic_convolution{random({3, 3}, 9)})},
                           random({N, 6}, 3), random({N, 6}, 4), random({N, 6}, 5), random({6, N}, 6)};
    CHECK(support::distance_where_it_grows(heads, words, queries, heads(heads.on(words), queries, causal{}), 4) <
          1e-12);

    for (const auto& report :
         {verify(convolves(dynamic(3)), {.query = N, .width = 5}),
          verify(attention{score::lightweight_convolution{random({3}, 5)}, normalize::ratio{}, combine::weighted_sum{}},
                 {.query = N, .width = 5})})
        CHECK_MESSAGE(bool(report), report.text());
    CHECK_THROWS_AS((void)attend(attend.on(words), random({2, 9, N + 1}, 1)), shape_error);
    const auto empty = convolves(score::dynamic_convolution{random({N, 0}, 1)});
    CHECK_THROWS_WITH_AS((void)empty(empty.on(words), queries), doctest::Contains("the kernel has no weights"),
                         shape_error);
    CHECK_THROWS_WITH_AS(
        (void)ops::at_distances(random({2, 3}, 1), std::size_t{1}, std::size_t{4}, lengths{1}, lengths_view{}),
        doctest::Contains("each row has a count"), shape_error);
}
