// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/gradients.hpp>
#include <support/scalar_memory.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t Q = 3, K = 2, D = 5;

auto score_of(std::size_t seed = 60)
{
    return score::gaussian_mixture{random({Q, 2 * K}, seed), random({2 * K}, seed + 1), random({Q, K}, seed + 2),
                                   random({K}, seed + 3)};
}
auto graves() { return attention{score_of(), normalize::retention{}, combine::weighted_sum{}}; }

/// Graves 2013, §5.1, in scalar loops: φ of one sentence at each step.
std::vector<std::vector<double>> windows(const auto& score, const std::vector<std::vector<double>>& queries,
                                         std::size_t positions)
{
    std::vector<double> kappa(K, 0.0);
    std::vector<std::vector<double>> all;
    for (const auto& h : queries) {
        std::vector<double> phi(positions, 0.0);
        for (std::size_t k = 0; k < K; ++k) {
            double a = score.b(k), c = score.b(K + k), move = score.b_kappa(k);
            for (std::size_t i = 0; i < Q; ++i) {
                a += h[i] * score.W(i, k);
                c += h[i] * score.W(i, K + k);
                move += h[i] * score.W_kappa(i, k);
            }
            kappa[k] += std::exp(move);
            for (std::size_t u = 1; u <= positions; ++u) {
                const double off = kappa[k] - static_cast<double>(u);
                phi[u - 1] += std::exp(a) * std::exp(-std::exp(c) * off * off);
            }
        }
        all.push_back(phi);
    }
    return all;
}

}  // namespace

TEST_CASE("a mixture of Gaussians matches its equations, step by step, in batches")
{
    const auto attend = graves();
    const lengths real{7, 0, 1, 4};
    const std::size_t B = 4, T = 7, S = 5;
    const auto h = random({B, T, D}, 1), queries = random({B, S, Q}, 2);
    const auto memory = attend.on(h, real);
    auto state = attend.start(memory);
    CHECK(shape_of(state.score.centers) == shape_of_rank<2>{B, K});
    double most = 0;
    for (std::size_t s = 0; s < S; ++s) {
        const auto seen = attend.step(memory, ops::step_of(queries, s), state);
        for (std::size_t b = 0; b < B; ++b) {
            std::vector<std::vector<double>> asked;
            for (std::size_t i = 0; i <= s; ++i) {
                asked.push_back({queries(b, i, 0), queries(b, i, 1), queries(b, i, 2)});
            }
            const auto phi = windows(attend.score, asked, real[b]).back();
            std::vector<double> context(D, 0.0);
            for (std::size_t j = 0; j < T; ++j) {
                CHECK(seen.weights(b, j) == doctest::Approx(j < real[b] ? phi[j] : 0).epsilon(1e-13));
                most = std::max(most, seen.weights(b, j));
                for (std::size_t d = 0; d < D && j < real[b]; ++d) context[d] += phi[j] * h(b, j, d);
            }
            for (std::size_t d = 0; d < D; ++d) {
                CHECK(seen.context(b, d) == doctest::Approx(context[d]).epsilon(1e-12));
            }
        }
        state = seen.state;
    }
    CHECK(most > 0.1);
}

TEST_CASE("computed manually: a window moves by one position at a time, and counts from 1")
{
    const array<double, 2> nothing(shape_of_rank<2>{1, 1}, 0.0), none(shape_of_rank<2>{1, 2}, 0.0);
    const attention attend{score::gaussian_mixture{none, array<double, 1>{0.0, 30.0}, nothing, array<double, 1>{0.0}},
                           normalize::retention{}, combine::weighted_sum{}};
    const auto memory = attend.on(array<double, 3>(shape_of_rank<3>{1, 4, 1}, 1.0));
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < 6; ++s) {
        const auto seen = attend.step(memory, nothing, state);
        CHECK(seen.state.score.centers(0, 0) == static_cast<double>(s + 1));
        for (std::size_t j = 0; j < 4; ++j) CHECK(seen.weights(0, j) == (j == s ? 1 : 0));
        state = seen.state;
    }
}

TEST_CASE("extremes: infinitely narrow, far beyond the end, too flat for a float")
{
    const float great = 1e4F;
    const array<float, 3> places{{{1}, {2}, {3}}};
    const auto sharp = ops::gaussian_mixture(array<float, 2>{{0, great}}, array<float, 2>{{2}}, places);
    CHECK(support::same_bits(sharp, array<float, 2>{{0, 1, 0}}));
    const float end = std::numeric_limits<float>::infinity();
    for (const float flat : {-great, 0.0F, great}) {
        const auto gone = ops::gaussian_mixture(array<float, 2>{{0, flat}}, array<float, 2>{{end}}, places);
        CHECK(support::same_bits(gone, array<float, 2>{{0, 0, 0}}));
    }
    const auto everywhere = ops::gaussian_mixture(array<float, 2>{{0, -great}}, array<float, 2>{{9}}, places);
    CHECK(support::same_bits(everywhere, array<float, 2>{{1, 1, 1}}));

    // A height that would overflow is clipped, and has no gradient.
    const auto high = ops::gaussian_mixture(array<float, 2>{{great, 0}}, array<float, 2>{{2}}, places);
    CHECK(high(0, 1) == doctest::Approx(std::exp(40.0F)).epsilon(1e-5));
    const auto of_shapes = [](const auto& shapes) {
        return ops::gaussian_mixture(shapes, array<double, 2>{{2, 1.5}}, array<double, 3>{{{1}, {2}, {3}}});
    };
    ad::tape<double> taped;
    const array<double, 2> one_too_high{{50, 1, 0, 0}};
    const auto shapes_on = taped.parameter(one_too_high);
    taped.backward(ops::dot(of_shapes(shapes_on), array<double, 2>{{1, 2, 3}}));
    CHECK(taped.gradient(shapes_on).data[0] == 0);
    CHECK(taped.gradient(shapes_on).data[1] > 0);

    // The backward pass has no NaN either: a position without weight has no gradient.
    ad::tape<float> on;
    const array<float, 2> shapes{{0, 0, great, 0}}, before{{1, 0}}, steps{{0, great}};
    const auto s = on.parameter(shapes), k = on.parameter(before), x = on.parameter(steps);
    const auto phi = ops::gaussian_mixture(s, ops::advance_means(k, x), places);
    on.backward(ops::dot(phi, array<float, 2>{{1, 2, 3}}));
    for (const auto& gradient : {on.gradient(s), on.gradient(k), on.gradient(x)}) {
        for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(std::isfinite(gradient.data[i]));
    }
    CHECK(on.gradient(s).data[0] == 2);  // the first Gaussian covers only position 2
}

TEST_CASE("gradients of the operations")
{
    const auto mixture = [](const auto& shapes, const auto& centers, const auto& places) {
        return ops::gaussian_mixture(shapes, centers, places);
    };
    CHECK_GRADIENT(mixture, random({2, 6}, 1), random({2, 3}, 2, 2.0), random({2, 19, 1}, 3, 2.0));
    CHECK_GRADIENT(mixture, random({1, 2}, 1), random({1, 1}, 2), random({1, 1, 1}, 3));
    support::check_empty(mixture, random({2, 2}, 1), random({2, 1}, 2), random({2, 0, 1}, 3));
    const auto move = [](const auto& places, const auto& steps) { return ops::advance_means(places, steps); };
    CHECK_GRADIENT(move, random({2, 9}, 1), random({2, 9}, 2));
}

TEST_CASE("gradients flow through the windows of several steps")
{
    const auto h = random({2, 5, D}, 1);
    const lengths real{5, 2};
    const auto third = [&](const auto& annotations, const auto& query, const auto& W, const auto& W_kappa) {
        const attention attend{score::gaussian_mixture{W, random({2 * K}, 5), W_kappa, random({K}, 6)},
                               normalize::ratio{}, combine::weighted_sum{}};
        const auto memory = attend.on(annotations, real);
        const auto one = attend.step(memory, query, attend.start(memory));
        const auto two = attend.step(memory, random({2, Q}, 3), one.state);
        return attend.step(memory, random({2, Q}, 4), two.state).context;
    };
    const auto query = random({2, Q}, 2), W = random({Q, 2 * K}, 7), W_kappa = random({Q, K}, 8);
    const auto found = support::gradient_of<0b1111>(third, h, query, W, W_kappa);
    CHECK_MESSAGE(bool(found), found.text());
}

TEST_CASE("a mixture satisfies the contracts as weights, and as scores of a softmax within a window")
{
    const auto check = [](const auto& policy) {
        const attention attend{score_of(), policy, combine::weighted_sum{}};
        const auto report = verify(attend, {.query = Q, .width = D});
        CHECK_MESSAGE(bool(report), report.text());
    };
    check(normalize::retention{});
    check(normalize::local_m{1});
}

TEST_CASE("a growing memory appends positions, and a window keeps its indices")
{
    const auto attend = graves();
    const auto h = random({2, 6, D}, 1);
    const auto query = random({2, Q}, 2);
    const auto whole = attend.on(h);
    array<double, 3> first(shape_of_rank<3>{2, 4, D}), rest(shape_of_rank<3>{2, 2, D});
    for (std::size_t b = 0; b < 2; ++b) {
        std::copy_n(h.data() + b * 6 * D, 4 * D, first.data() + b * 4 * D);
        std::copy_n(h.data() + (b * 6 + 4) * D, 2 * D, rest.data() + b * 2 * D);
    }
    const auto grown = attend.extend(attend.on(first), rest);
    CHECK(support::same_bits(attend.step(grown, query, attend.start(grown)).weights,
                             attend.step(whole, query, attend.start(whole)).weights));
}

TEST_CASE("shapes that do not fit are rejected")
{
    const auto misfit = [](std::size_t columns, std::size_t components) {
        const attention attend{score::gaussian_mixture{random({Q, columns}, 1), random({columns}, 2),
                                                       random({Q, components}, 3), random({components}, 4)},
                               normalize::retention{}, combine::weighted_sum{}};
        const auto memory = attend.on(random({2, 4, D}, 5));
        (void)attend.step(memory, random({2, Q}, 6), attend.start(memory));
    };
    CHECK_NOTHROW(misfit(4, 2));
    CHECK_THROWS_WITH_AS(misfit(0, 0), doctest::Contains("at least one"), shape_error);
    CHECK_THROWS_WITH_AS(misfit(3, 2), doctest::Contains("two columns for each"), shape_error);
    CHECK_THROWS_WITH_AS(misfit(2, 2), doctest::Contains("W_kappa is [3,2]"), shape_error);
    const auto places = random({2, 4, 1}, 1);
    CHECK_THROWS_AS(ops::gaussian_mixture(random({2, 3}, 1), random({2, 2}, 2), places), shape_error);
    CHECK_THROWS_AS(ops::gaussian_mixture(random({2, 4}, 1), random({1, 2}, 2), places), shape_error);
    CHECK_THROWS_AS(ops::gaussian_mixture(random({2, 4}, 1), random({2, 2}, 2), random({2, 4, 2}, 1)), shape_error);
    CHECK_THROWS_AS(ops::advance_means(random({2, 2}, 1), random({2, 3}, 2)), shape_error);
}
