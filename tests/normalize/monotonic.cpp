// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

// Alignments that only move forward: monotonic, monotonic_hard, chunkwise, and noise on their scores.

using namespace heed;
using support::random;

namespace {

constexpr double none = -std::numeric_limits<double>::infinity();
constexpr double infinity = std::numeric_limits<double>::infinity();
using numbers = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// α_j = p_j Σ_{k≤j} α'_k Π_{l=k}^{j−1} (1 − p_l): Raffel et al. 2017, eq. 9, without any recurrence.
numbers expected(const numbers& e, double r, const numbers& before)
{
    numbers alpha(e.size());
    for (std::size_t j = 0; j < e.size(); ++j) {
        double sum = 0;
        for (std::size_t k = 0; k <= j; ++k) {
            double passed = before[k];
            for (std::size_t l = k; l < j; ++l) passed *= 1 - sigmoid(e[l] + r);
            sum += passed;
        }
        alpha[j] = sigmoid(e[j] + r) * sum;
    }
    return alpha;
}

/// β_j = Σ_{k=j}^{j+w−1} α_k exp(u_j) / Σ_{l=k−w+1}^{k} exp(u_l): Chiu & Raffel 2018, as printed, u = s e.
numbers in_chunks(const numbers& alpha, const numbers& e, double s, std::size_t w)
{
    const std::size_t n = e.size();
    numbers beta(n, 0.0);
    for (std::size_t j = 0; j < n; ++j) {
        if (e[j] == none) continue;
        for (std::size_t k = j; k < std::min(n, j + w); ++k) {
            double sum = 0;
            for (std::size_t l = k + 1 < w ? 0 : k + 1 - w; l <= k; ++l) {
                if (e[l] != none) sum += std::exp(s * (e[l] - e[j]));
            }
            beta[j] += alpha[k] / sum;
        }
    }
    return beta;
}

/// The scores of dimension d of row b, -inf where a mask hides them.
numbers row_of(const auto& e, const boolean_mask<2>* seen, const lengths& real, std::size_t b, std::size_t d)
{
    const auto shape = shape_of(e);
    const std::size_t T = shape[1], N = e.size() / (shape[0] * T);
    numbers row;
    for (std::size_t j = 0; j < real[b]; ++j) {
        row.push_back(seen != nullptr && !(*seen)[b * T + j] ? none : e.data()[(b * T + j) * N + d]);
    }
    return row;
}

/// A moment that shows what a mask leaves.
struct masked_moment {
    lengths_view real;
    std::size_t step;
    const boolean_mask<2>& seen;

    auto visible(const tensor auto& scores) const { return ops::hide(scores, seen); }
};

/// The weights of a policy at every step, from hooks alone.
template <class Scores>
std::vector<Scores> weights_of(const auto& policy, const std::vector<Scores>& e, const auto& moment_of)
{
    auto state = start_of(policy, [&](double x) { return constant_like(e[0], shape_of(e[0]), x); });
    std::vector<Scores> all;
    for (std::size_t s = 0; s < e.size(); ++s) {
        const auto at = moment_of(s);
        all.push_back(weigh(policy, e[s], state, at));
        state = next_of(policy, e[s], all.back(), state, at);
    }
    return all;
}

/// A policy's steps are these of a scalar loop: alpha(scores, α before) -> α, beta(scores, α) -> weights.
void check_steps(const auto& policy, const auto& e, const lengths& real, const boolean_mask<2>* seen, const auto& alpha,
                 const auto& beta)
{
    const boolean_mask<2> nothing;
    const auto weights = [&] {
        if (seen == nullptr) return weights_of(policy, e, [&](std::size_t s) { return plain_moment{real, s}; });
        return weights_of(policy, e, [&](std::size_t s) { return masked_moment{real, s, *seen}; });
    }();
    const auto shape = shape_of(e[0]);
    const std::size_t T = shape[1], N = e[0].size() / (shape[0] * T);
    double worst = 0, most = 0;
    for (std::size_t b = 0; b < shape[0]; ++b) {
        for (std::size_t d = 0; d < N; ++d) {
            numbers before(real[b], 0.0);
            if (real[b] > 0) before[0] = 1;
            for (std::size_t s = 0; s < e.size(); ++s) {
                const numbers scores = row_of(e[s], seen, real, b, d);
                before = alpha(scores, before);
                const numbers must = beta(scores, before);
                for (std::size_t j = 0; j < T; ++j) {
                    const double is = weights[s].data()[(b * T + j) * N + d];
                    const double off = std::abs(is - (j < real[b] ? must[j] : 0));
                    worst = off >= 0 ? std::max(worst, off) : infinity;
                    most = std::max(most, is);
                }
            }
        }
    }
    CHECK(worst < 1e-14);
    CHECK(most > 0.01);
}

const array<double, 1> r{-0.4}, s{1.3};

std::vector<array<double, 2>> some_scores(std::size_t B, std::size_t T, std::size_t steps)
{
    std::vector<array<double, 2>> e;
    for (std::size_t i = 0; i < steps; ++i) e.push_back(random({B, T}, 10 + i, 2.0));
    return e;
}
std::vector<array<double, 3>> some_scores(std::size_t B, std::size_t T, std::size_t N, std::size_t steps)
{
    std::vector<array<double, 3>> e;
    for (std::size_t i = 0; i < steps; ++i) e.push_back(random({B, T, N}, 20 + i, 2.0));
    return e;
}

boolean_mask<2> every_third_hidden(std::size_t B, std::size_t T)
{
    boolean_mask<2> seen(shape_of_rank<2>{B, T});
    for (std::size_t i = 0; i < B * T; ++i) seen[i] = i % 3 != 1 && i / T != B - 1;  // the last row sees nothing
    return seen;
}

/// All of it: batches, lengths, dimensions and masks.
void check_everywhere(const auto& policy, const auto& alpha, const auto& beta)
{
    check_steps(policy, some_scores(4, 7, 5), lengths{7, 0, 1, 4}, nullptr, alpha, beta);
    check_steps(policy, some_scores(1, 40, 12), lengths{40}, nullptr, alpha, beta);
    check_steps(policy, some_scores(3, 6, 5, 4), lengths{6, 2, 0}, nullptr, alpha, beta);
    const auto seen = every_third_hidden(4, 7);
    check_steps(policy, some_scores(4, 7, 5), lengths{7, 3, 1, 4}, &seen, alpha, beta);
}

const auto as_they_are = [](const numbers&, const numbers& alpha) { return alpha; };

}  // namespace

TEST_CASE("monotonic weights are the printed sum of products, step after step")
{
    check_everywhere(
        normalize::monotonic{r}, [](const numbers& e, const numbers& before) { return expected(e, r(0), before); },
        as_they_are);
}

TEST_CASE("monotonic: by hand")
{
    // Two positions, p = 1/2: α_1 = (1/2, 1/4), the rest ran past the end; α_2 = (1/4, (1/4 + 1/4)/2).
    const array<double, 2> e{{0.0, 0.0}};
    const array<double, 1> no_bias{0.0};
    const auto one = ops::monotonic(e, no_bias, array<double, 2>{{1.0, 0.0}}, lengths{2});
    CHECK(one(0, 0) == 0.5);
    CHECK(one(0, 1) == 0.25);
    const auto two = ops::monotonic(e, no_bias, one, lengths{2});
    CHECK(two(0, 0) == 0.25);
    CHECK(two(0, 1) == 0.25);
}

TEST_CASE("monotonic: great scores, infinite ones and long rows lose nothing")
{
    const array<float, 1> zero{0};
    const auto certain = ops::monotonic(array<float, 2>{{-1e4F, 1e4F, -1e4F, 1e4F}}, zero,
                                        array<float, 2>{{0.5F, 0, 0.5F, 0}}, lengths{4});
    CHECK(support::same_bits(certain, array<float, 2>{{0, 0.5F, 0, 0.5F}}));
    const float end = std::numeric_limits<float>::infinity();
    const auto infinite =
        ops::monotonic(array<float, 2>{{-end, end, -end, end}}, zero, array<float, 2>{{0.5F, 0, 0.5F, 0}}, lengths{4});
    CHECK(support::same_bits(infinite, certain));
    // 1 − p = 1e-3 at each of 200 positions: the cumulative products of the closed form underflow in float.
    array<float, 2> e(shape_of_rank<2>{1, 200}, 6.9F), before(shape_of_rank<2>{1, 200}, 0.005F);
    const auto in_float = ops::monotonic(e, zero, before, lengths{200});
    const auto exact = expected(numbers(200, 6.9F), 0, numbers(200, 0.005F));
    double worst = 0;
    for (std::size_t j = 0; j < 200; ++j) {
        worst = std::max(worst, std::abs(static_cast<double>(in_float(0, j)) / exact[j] - 1));
    }
    CHECK(worst < 1e-6);
    // What passes ten of them, 1e-30, has all its digits: 1 − p is not the difference of rounded numbers.
    array<float, 2> from_first(shape_of_rank<2>{1, 10}, 0.0F), same(shape_of_rank<2>{1, 10}, 6.9F);
    from_first(0, 0) = 1;
    numbers begin(10, 0.0);
    begin[0] = 1;
    const auto passed = ops::monotonic(same, zero, from_first, lengths{10});
    const auto must = expected(numbers(10, 6.9F), 0, begin);
    for (std::size_t j = 0; j < 10; ++j) { CHECK(std::abs(static_cast<double>(passed(0, j)) / must[j] - 1) < 4e-6); }
    // p = 1e-4 at each of 20000: what stops anywhere and what does not sum to 1.
    array<double, 2> rare(shape_of_rank<2>{1, 20000}, -9.21), first(shape_of_rank<2>{1, 20000}, 0.0);
    first(0, 0) = 1;
    double sum = 0;
    for (const double x : ops::monotonic(rare, array<double, 1>{0.0}, first, lengths{20000})) sum += x;
    CHECK(sum == support::approx(1 - std::pow(sigmoid(9.21), 20000)));
}

TEST_CASE("monotonic never looks back, and a row without positions has weights 0")
{
    const normalize::monotonic policy{r};
    auto e = some_scores(2, 6, 4);
    for (std::size_t j = 0; j < 6; ++j) e[1](0, j) = j == 3 ? 1e4 : -1e4;  // step 2 stops at position 3 of row 0
    const lengths real{6, 0};
    const auto weights = weights_of(policy, e, [&real](std::size_t step) { return plain_moment{real, step}; });
    for (std::size_t step = 1; step < 4; ++step) {
        for (std::size_t j = 0; j < 3; ++j) CHECK(weights[step](0, j) == 0);
        for (std::size_t j = 0; j < 6; ++j) CHECK(weights[step](1, j) == 0);
    }
    CHECK(weights[2](0, 3) > 0);
    CHECK(weights[0](0, 0) > 0);
}

TEST_CASE("monotonic: gradients by scores, bias and what was before, and through the state of several steps")
{
    const lengths real{7, 0, 1, 4};
    const auto f = [&](const auto& e, const auto& bias, const auto& before) {
        return ops::monotonic(e, bias, before, real);
    };
    CHECK_GRADIENT(f, random({4, 7}, 1), r, random({4, 7}, 2));
    CHECK_GRADIENT(f, random({4, 7, 3}, 3), r, random({4, 7, 3}, 4));
    const auto seen = every_third_hidden(4, 7);
    const auto g = [&](const auto& e, const auto& bias, const auto& before) {
        return ops::monotonic(ops::hide(e, seen), bias, before, real);
    };
    CHECK_GRADIENT(g, random({4, 7}, 5), r, random({4, 7}, 6));

    const auto third = [&](const auto& one, const auto& two, const auto& three, const auto& bias) {
        const normalize::monotonic policy{bias};
        const auto zeros = [&](double x) { return constant_like(one, shape_of(one), x); };
        auto a = weigh(policy, one, start_of(policy, zeros), plain_moment{real, 0});
        const auto after_one = next_of(policy, one, a, start_of(policy, zeros), plain_moment{real, 0});
        auto b = weigh(policy, two, after_one, plain_moment{real, 1});
        return weigh(policy, three, next_of(policy, two, b, after_one, plain_moment{real, 1}), plain_moment{real, 2});
    };
    const auto found = support::gradient_of<0b1111>(third, random({4, 7}, 7), random({4, 7}, 8), random({4, 7}, 9), r);
    CHECK_MESSAGE(bool(found), found.text());
}

TEST_CASE("what is hidden is not read: NaN in its derivative stays there")
{
    const array<double, 2> e{{0.3, none, -0.2}}, before = random({1, 3}, 1);
    const lengths real{3};
    const auto w = ops::monotonic(e, r, before, real);
    const array<double, 2> upstream{{1.0, std::numeric_limits<double>::quiet_NaN(), 2.0}};
    array<double, 2> d_e(shape_of_rank<2>{1, 3}, 0.0), d_before = d_e;
    array<double, 1> d_bias{0.0};
    using in_2 = ops::in<double, 2>;
    ops::monotonic.backward(in_2(view_of(e)), ops::in<double, 1>(view_of(r)), in_2(view_of(before)), real,
                            in_2(view_of(w)), in_2(view_of(upstream)), ops::adjoint<double, 2>{view_of(d_e)},
                            ops::adjoint<double, 1>{view_of(d_bias)}, ops::adjoint<double, 2>{view_of(d_before)});
    CHECK(support::all_finite(d_e));
    CHECK(support::all_finite(d_before));
    CHECK(std::isfinite(d_bias(0)));
    CHECK(d_e(0, 1) == 0);
    CHECK(d_e(0, 0) != 0);
}

TEST_CASE("hard monotonic weights are the scan, step after step")
{
    const auto scan = [](const numbers& e, const numbers& before) {
        numbers alpha(e.size(), 0.0);
        const auto from = std::find(before.begin(), before.end(), 1.0) - before.begin();
        for (std::size_t j = static_cast<std::size_t>(from); j < e.size(); ++j) {
            if (!(sigmoid(e[j] + r(0)) >= 0.5)) continue;
            alpha[j] = 1;
            break;
        }
        return alpha;
    };
    check_everywhere(normalize::monotonic_hard{r}, scan, as_they_are);
    check_everywhere(normalize::chunkwise{3, s, normalize::monotonic_hard{r}}, scan,
                     [](const numbers& e, const numbers& alpha) { return in_chunks(alpha, e, s(0), 3); });
}

TEST_CASE("the hard scan is the limit of the soft one, and stays behind the end")
{
    std::vector<array<double, 2>> e;
    for (std::size_t step = 0; step < 6; ++step) {
        e.push_back(random({8, 9}, 30 + step));
        for (double& x : e.back()) x *= 1e4;
    }
    const lengths real{9, 8, 7, 6, 5, 4, 1, 0};
    const auto at = [&real](std::size_t step) { return plain_moment{real, step}; };
    const auto soft = weights_of(normalize::monotonic{array<double, 1>{0.0}}, e, at);
    const auto hard = weights_of(normalize::monotonic_hard{array<double, 1>{0.0}}, e, at);
    double sums = 0;
    for (std::size_t step = 0; step < 6; ++step) {
        CHECK(support::distance(soft[step], hard[step]) < 1e-15);
        sums = 0;
        for (const double x : hard[step]) sums += x;
    }
    CHECK(sums < 8);  // some have run past the end, and have weights 0 from then on
    CHECK(sums > 0);

    const array<double, 2> just{{-0.5, 0.0}}, start{{1.0, 0.0}};
    CHECK(ops::first_stop(just, array<double, 1>{0.0}, start, lengths{2})(0, 1) == 1);  // p = 1/2 stops
    CHECK(ops::first_stop(just, array<double, 1>{0.5}, start, lengths{2})(0, 0) == 1);
    CHECK(ops::first_stop(just, array<double, 1>{-1e-9}, start, lengths{2})(0, 1) == 0);
}

TEST_CASE("chunkwise weights are the printed sums, for any width and any weights inside")
{
    const auto soft = [](const numbers& e, const numbers& before) { return expected(e, r(0), before); };
    for (const std::size_t w : {1u, 2u, 3u, 4u, 7u, 8u, 1000u}) {
        check_everywhere(normalize::chunkwise{w, s, normalize::monotonic{r}}, soft,
                         [w](const numbers& e, const numbers& alpha) { return in_chunks(alpha, e, s(0), w); });
    }
    const auto softmax = [](const numbers& e, const numbers&) {
        numbers a(e.size(), 0.0);
        double sum = 0;
        for (std::size_t j = 0; j < e.size(); ++j) sum += a[j] = std::exp(e[j]);
        for (double& x : a) x = sum > 0 ? x / sum : 0;
        return a;
    };
    check_everywhere(normalize::chunkwise{3, s, normalize::softmax{}}, softmax,
                     [](const numbers& e, const numbers& alpha) { return in_chunks(alpha, e, s(0), 3); });
}

namespace {

/// A scan that counts how often it is asked for its weights.
template <class Scan>
struct counted_scan {
    Scan scan;
    int* count;

    auto start(auto&& blank) const { return scan.start(blank); }
    auto operator()(const auto& scores, const auto& before, const auto& at) const
    {
        ++*count;
        return scan(scores, before, at);
    }
    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& before, const auto& at) const
    {
        return scan.advance(scores, weights, before, at);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        auto scan = visit("scan", self.scan);
        return counted_scan<decltype(scan)>{std::move(scan), self.count};
    }
};

}  // namespace

TEST_CASE("chunkwise: a step scans once, and its weights and state are those of the two calls")
{
    int count = 0;
    const normalize::chunkwise policy{3, s, counted_scan<normalize::monotonic<array<double, 1>>>{{r}, &count}};
    const attention attend{score::dot{}, policy, combine::weighted_sum{}};
    const auto h = random({1, 6, 4}, 1);
    const auto q = random({1, 4}, 2);
    const auto memory = attend.on(h);
    (void)attend.step(memory, q, attend.start(memory));
    CHECK(count == 1);
    const auto e = random({2, 6}, 3), before = random({2, 6}, 4);
    const lengths real{6, 4};
    const plain_moment at{real};
    const normalize::last_alignment past{before};
    const auto both = weigh_with_next(policy, e, past, at);
    const auto weights = weigh(policy, e, past, at);
    CHECK(support::same_bits(both.weights, weights));
    CHECK(support::same_bits(both.next.alignment, next_of(policy, e, weights, past, at).alignment));
}

TEST_CASE("chunkwise: a chunk of 1 is what is inside, a scale of 0 its mean, and the sum stays")
{
    const auto e = random({3, 9}, 1, 2.0), alpha = random({3, 9}, 2);
    const lengths real{9, 5, 0};
    const auto one = ops::chunks(alpha, e, s, 1, real);
    for (std::size_t j = 0; j < 5; ++j) CHECK(one(1, j) == doctest::Approx(alpha(1, j)).epsilon(1e-15));
    const auto mean = ops::chunks(array<double, 2>{{0, 0, 0, 1, 0}}, array<double, 2>{{5, 1, 7, -2, 3}},
                                  array<double, 1>{0.0}, 2, lengths{5});
    CHECK(support::same_bits(mean, array<double, 2>{{0, 0, 0.5, 0.5, 0}}));
    const auto three = ops::chunks(alpha, e, s, 3, real);
    for (std::size_t b = 0; b < 2; ++b) {
        double is = 0, must = 0;
        for (std::size_t j = 0; j < real[b]; ++j) is += three(b, j), must += alpha(b, j);
        CHECK(is == doctest::Approx(must).epsilon(1e-13));
    }
    CHECK_THROWS_WITH_AS(ops::chunks(alpha, e, s, 0, real), doctest::Contains("at least 1"), error);
}

TEST_CASE("chunkwise: windows far below others, great scores of both signs, and infinite ones")
{
    // Relative to the greatest of the row the second half would be 0/0.
    array<float, 2> e(shape_of_rank<2>{1, 8}), alpha(shape_of_rank<2>{1, 8}, 0.125F);
    for (std::size_t j = 0; j < 8; ++j) e(0, j) = (j < 4 ? 1e4F : -1e4F) + static_cast<float>(j % 3);
    numbers exact;
    for (const float x : e) exact.push_back(static_cast<double>(x));
    for (const float scale : {1.0F, -1.0F, 2.0F}) {
        for (const std::size_t w : {2u, 3u, 8u}) {
            const auto is = ops::chunks(alpha, e, array<float, 1>{scale}, w, lengths{8});
            const auto must = in_chunks(numbers(8, 0.125), exact, static_cast<double>(scale), w);
            for (std::size_t j = 0; j < 8; ++j) { CHECK(std::abs(static_cast<double>(is(0, j)) - must[j]) < 1e-6); }
        }
    }
    const float end = std::numeric_limits<float>::infinity(), great = std::numeric_limits<float>::max();
    for (const float scale : {2.0F, -2.0F, 0.0F}) {
        const array<float, 2> wild{{end, great, -great, -end, 0, -end, end, 1}};
        CHECK(support::all_finite(ops::chunks(alpha, wild, array<float, 1>{scale}, 3, lengths{8})));
    }
    const array<float, 2> hidden(shape_of_rank<2>{1, 8}, -end);
    for (const float x : ops::chunks(alpha, hidden, array<float, 1>{-1}, 3, lengths{8})) CHECK(x == 0);
}

TEST_CASE("chunkwise: gradients by weights, scores and scale, and through the state of several steps")
{
    const lengths real{7, 0, 1, 4};
    for (const std::size_t w : {1u, 2u, 3u, 9u}) {
        const auto f = [&](const auto& alpha, const auto& e, const auto& scale) {
            return ops::chunks(alpha, e, scale, w, real);
        };
        CHECK_GRADIENT(f, random({4, 7}, 1), random({4, 7}, 2), s);
        CHECK_GRADIENT(f, random({4, 7, 3}, 3), random({4, 7, 3}, 4), s);
    }
    const auto seen = every_third_hidden(4, 7);
    const auto steps = [&](const auto& one, const auto& two, const auto& three, const auto& bias, const auto& scale) {
        const normalize::chunkwise policy{3, scale, normalize::monotonic{bias}};
        const auto zeros = [&](double x) { return constant_like(one, shape_of(one), x); };
        const auto start = start_of(policy, zeros);
        const masked_moment now{real, 0, seen}, then{real, 1, seen}, last{real, 2, seen};
        const auto after = next_of(policy, one, weigh(policy, one, start, now), start, now);
        const auto second = weigh(policy, two, after, then);
        return ops::add(second, weigh(policy, three, next_of(policy, two, second, after, then), last));
    };
    const auto found =
        support::gradient_of<0b11111>(steps, random({4, 7}, 7), random({4, 7}, 8), random({4, 7}, 9), r, s);
    CHECK_MESSAGE(bool(found), found.text());
}

TEST_CASE("what lies before a window walks into it, whatever the window remembers")
{
    // A window of 3 positions moves on by one at each step. What is left behind it is passed by, not lost.
    const std::size_t T = 7, steps = 6;
    const auto W = random({3, 3}, 1);
    const auto h = random({1, T, 3}, 2);
    const auto check = [&](const auto& window) {
        const attention attend{score::general{W}, window, combine::weighted_sum{}};
        const auto memory = attend.on(h);
        auto state = attend.start(memory);
        numbers before(T, 0.0);
        before[0] = 1;
        for (std::size_t t = 0; t < steps; ++t) {
            const auto query = random({1, 3}, 40 + t);
            const auto e = attend.score(query, memory.keys);
            numbers scores(T, none);
            for (std::size_t j = t < 1 ? 0 : t - 1; j <= std::min(t + 1, T - 1); ++j) scores[j] = e(0, j);
            before = expected(scores, r(0), before);
            const auto seen = attend.step(memory, query, state);
            for (std::size_t j = 0; j < T; ++j) CHECK(std::abs(seen.weights(0, j) - before[j]) < 1e-14);
            state = seen.state;
        }
        double sum = 0;
        for (const double x : before) sum += x;
        CHECK(sum > 0.01);
    };
    check(normalize::local_m{1, normalize::monotonic{r}});
    check(normalize::local_m{1, normalize::monotonic{r}, normalize::history::in_window{}});
}

TEST_CASE("shapes that do not fit are errors")
{
    const auto e = random({2, 4}, 1);
    const lengths real{4, 2};
    CHECK_THROWS_WITH_AS(ops::monotonic(e, array<double, 1>{1.0, 2.0}, e, real), doctest::Contains("bias"),
                         shape_error);
    CHECK_THROWS_WITH_AS(ops::monotonic(e, r, random({2, 3}, 1), real), doctest::Contains("alignment"), shape_error);
    CHECK_THROWS_WITH_AS(ops::first_stop(e, r, random({1, 4}, 1), real), doctest::Contains("alignment"), shape_error);
    CHECK_THROWS_WITH_AS(ops::chunks(random({2, 3}, 1), e, s, 2, real), doctest::Contains("alignment"), shape_error);
    CHECK_THROWS_WITH_AS(ops::chunks(e, e, array<double, 1>(shape_of_rank<1>{0}), 2, real), doctest::Contains("scale"),
                         shape_error);
    CHECK_THROWS_AS(ops::monotonic(e, r, e, lengths{5, 2}), shape_error);
    CHECK(ops::monotonic(random({2, 0}, 1), r, random({2, 0}, 1), lengths{0, 0}).size() == 0);
    CHECK(ops::chunks(random({0, 4}, 1), random({0, 4}, 1), s, 2, lengths{}).size() == 0);
    const attention attend{score::dot{}, normalize::chunkwise{0, s, normalize::monotonic{r}}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 4, 3}, 1), real);
    CHECK_THROWS_WITH_AS(attend.step(memory, random({2, 3}, 2), attend.start(memory)), doctest::Contains("chunk"),
                         error);
}

TEST_CASE("noise changes scores on the tape, by seed, step, row and position, and nothing else")
{
    const auto W = random({3, 3}, 1), query = random({2, 3}, 3);
    const auto annotations = random({2, 6, 3}, 2);
    const lengths real{6, 4};
    const auto weights = [&](const auto& policy, bool taped) {
        const attention attend{score::general{W}, policy, combine::weighted_sum{}};
        ad::tape<double> on;
        const auto run = [&](const auto& model) {
            const auto memory = model.on(annotations, real);
            const auto one = model.step(memory, query, model.start(memory));
            const auto two = model.step(memory, query, one.state);
            return copy_of(view_of(two.weights));
        };
        return taped ? run(ad::lift(on, attend)) : run(attend);
    };
    const normalize::monotonic plain{r};
    const auto quiet = weights(plain, true);
    CHECK(support::distance(weights(plain, false), quiet) < 1e-15);
    CHECK(support::same_bits(weights(normalize::noisy{1.0, 7, plain}, false), weights(plain, false)));
    const auto noise = weights(normalize::noisy{1.0, 7, plain}, true);
    CHECK(support::distance(noise, quiet) > 1e-3);
    CHECK(support::same_bits(noise, weights(normalize::noisy{1.0, 7, plain}, true)));
    CHECK(support::distance(noise, weights(normalize::noisy{1.0, 8, plain}, true)) > 1e-3);
    CHECK(support::distance(noise, weights(normalize::noisy{1.0, 7, plain, {.at_inference = true}}, false)) < 1e-14);
    CHECK(support::same_bits(weights(normalize::noisy{0.0, 7, plain}, true), quiet));
    for (const double sigma : {-1.0, infinity, std::numeric_limits<double>::quiet_NaN()}) {
        CHECK_THROWS_WITH_AS(weights(normalize::noisy{sigma, 7, plain}, true), doctest::Contains("sigma"), error);
    }
}

TEST_CASE("what remembers below the noise remembers noisy scores")
{
    const auto e = some_scores(2, 5, 3);
    const lengths real{5, 3};
    const auto at = [&real](std::size_t step) { return plain_moment{real, step}; };
    std::vector<array<double, 2>> noisy;
    for (std::size_t step = 0; step < 3; ++step) {
        noisy.push_back(ops::add_normal(e[step], real, ops::stream_of(7, step, ops::chance::normal_noise), 0.5));
    }
    const auto check = [&](const auto& inner) {
        const auto is = weights_of(normalize::noisy{0.5, 7, inner, {.at_inference = true}}, e, at);
        const auto must = weights_of(inner, noisy, at), without = weights_of(inner, e, at);
        for (std::size_t step = 0; step < 3; ++step) {
            CHECK(support::same_bits(is[step], must[step]));
            CHECK(support::distance(is[step], without[step]) > 1e-3);
        }
    };
    check(normalize::temporal{});
    check(normalize::chunkwise{2, s, normalize::monotonic{r}});
}

TEST_CASE("noise is standard normal, leaves -inf and padding, and does not depend on lengths or dimensions")
{
    const array<double, 2> zeros(shape_of_rank<2>{40, 500}, 0.0);
    const auto g = ops::add_normal(zeros, lengths::full(40, 500), 5, 2.0);
    double mean = 0, squares = 0;
    for (const double x : g) mean += x / 20000, squares += x * x / 20000;
    CHECK(std::abs(mean) < 0.05);
    CHECK(std::abs(squares - 4) < 0.15);
    const auto few = ops::add_normal(array<double, 2>{{1.0, none, 2.0}}, lengths{2}, 5, 2.0);
    CHECK(few(0, 0) == 1 + g(0, 0));
    CHECK(few(0, 1) == none);
    CHECK(few(0, 2) == 0);
    const auto f = [](const auto& e) { return ops::add_normal(e, lengths{4, 0, 2}, 5, 2.0); };
    CHECK_GRADIENT(f, random({3, 4}, 1));
    CHECK_GRADIENT(f, random({3, 4, 2}, 2));
}

TEST_CASE("they keep the contracts, per position and per dimension")
{
    const auto W = random({3, 4}, 11), U = random({5, 4}, 12), V = random({4, 5}, 13);
    const auto v = random({4}, 14, 2.0);
    const auto check = [&](const auto& policy) {
        const auto per_position =
            verify(attention{score::additive{W, U, v}, policy, combine::weighted_sum{}}, {.query = 3, .width = 5});
        CHECK_MESSAGE(bool(per_position), per_position.text());
        const auto per_dimension =
            verify(attention{score::additive_per_dimension{W, U, V}, policy, combine::elementwise_sum{}},
                   {.query = 3, .width = 5});
        CHECK_MESSAGE(bool(per_dimension), per_dimension.text());
    };
    check(normalize::monotonic{r});
    check(normalize::monotonic_hard{r});
    check(normalize::chunkwise{2, s, normalize::monotonic{r}});
    check(normalize::chunkwise{2, s, normalize::noisy{0.5, 3, normalize::monotonic{r}, {.at_inference = true}}});
    check(normalize::local_m{1, normalize::monotonic{r}});
    check(normalize::local_m{2, normalize::chunkwise{2, s, normalize::monotonic{r}}, normalize::history::in_window{}});
    check(normalize::noisy{0.5, 3, normalize::local_m{1, normalize::sigmoid{}}, {.at_inference = true}});
}
