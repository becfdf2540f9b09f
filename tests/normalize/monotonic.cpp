// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/monotonic.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/monotonic.hpp>

using namespace heed;
using support::random;
using namespace support::monotonic;

TEST_CASE("monotonic weights are the printed sum of products, at each step")
{
    check_everywhere(
        normalize::monotonic{r}, [](const numbers& e, const numbers& before) { return expected(e, r(0), before); },
        as_they_are);
}

TEST_CASE("monotonic: computed manually")
{
    // Two positions, p = 1/2: α_1 = (1/2, 1/4), the rest passed the end; α_2 = (1/4, (1/4 + 1/4)/2).
    const array<double, 2> e{{0.0, 0.0}};
    const array<double, 1> no_bias{0.0};
    const auto one = ops::monotonic(e, no_bias, array<double, 2>{{1.0, 0.0}}, lengths{2});
    CHECK(one(0, 0) == 0.5);
    CHECK(one(0, 1) == 0.25);
    const auto two = ops::monotonic(e, no_bias, one, lengths{2});
    CHECK(two(0, 0) == 0.25);
    CHECK(two(0, 1) == 0.25);
}

TEST_CASE("monotonic: accurate for large and infinite scores and long rows")
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
    // The weight that passes ten of these, 1e-30, is accurate: 1 − p is not a difference of rounded numbers.
    array<float, 2> from_first(shape_of_rank<2>{1, 10}, 0.0F), same(shape_of_rank<2>{1, 10}, 6.9F);
    from_first(0, 0) = 1;
    numbers begin(10, 0.0);
    begin[0] = 1;
    const auto passed = ops::monotonic(same, zero, from_first, lengths{10});
    const auto must = expected(numbers(10, 6.9F), 0, begin);
    for (std::size_t j = 0; j < 10; ++j) { CHECK(std::abs(static_cast<double>(passed(0, j)) / must[j] - 1) < 4e-6); }
    // p = 1e-4 at each of 20000 positions: the weights sum to 1 minus the probability of passing all.
    array<double, 2> rare(shape_of_rank<2>{1, 20000}, -9.21), first(shape_of_rank<2>{1, 20000}, 0.0);
    first(0, 0) = 1;
    double sum = 0;
    for (const double x : ops::monotonic(rare, array<double, 1>{0.0}, first, lengths{20000})) sum += x;
    CHECK(sum == support::approx(1 - std::pow(sigmoid(9.21), 20000)));
}

TEST_CASE("monotonic never moves back, and a row without positions has weights 0")
{
    const normalize::monotonic policy{r};
    auto e = some_scores(2, 6, 4);
    for (std::size_t j = 0; j < 6; ++j) e[1](0, j) = j == 3 ? 1e4 : -1e4;  // step 2 stops at position 3 of row 0
    const lengths real{6, 0};
    const auto weights = weights_of(policy, e, [&real](std::size_t step) { return plain_step_context{real, step}; });
    for (std::size_t step = 1; step < 4; ++step) {
        for (std::size_t j = 0; j < 3; ++j) CHECK(weights[step](0, j) == 0);
        for (std::size_t j = 0; j < 6; ++j) CHECK(weights[step](1, j) == 0);
    }
    CHECK(weights[2](0, 3) > 0);
    CHECK(weights[0](0, 0) > 0);
}

TEST_CASE(
    "monotonic: gradients with respect to scores, bias and previous weights, and through the state of several steps")
{
    const lengths real{7, 0, 1, 4};
    const auto f = [&](const auto& e, const auto& bias, const auto& before) {
        return ops::monotonic(e, bias, before, real);
    };
    CHECK_GRADIENT(f, random({4, 7}, 1), r, random({4, 7}, 2));
    const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
    check(support::gradient_of<0b111>(f, random({4, 7, 3}, 3), r, random({4, 7, 3}, 4)));
    const auto seen = every_third_hidden(4, 7);
    const auto g = [&](const auto& e, const auto& bias, const auto& before) {
        return ops::monotonic(ops::masked_fill(e, seen), bias, before, real);
    };
    check(support::gradient_of<0b111>(g, random({4, 7}, 5), r, random({4, 7}, 6)));

    const auto third = [&](const auto& one, const auto& two, const auto& three, const auto& bias) {
        const normalize::monotonic policy{bias};
        const auto zeros = [&](double x) { return constant_like(one, shape_of(one), x); };
        auto a = weigh(policy, one, start_of(policy, zeros), plain_step_context{real, 0});
        const auto after_one = next_of(policy, one, a, start_of(policy, zeros), plain_step_context{real, 0});
        auto b = weigh(policy, two, after_one, plain_step_context{real, 1});
        return weigh(policy, three, next_of(policy, two, b, after_one, plain_step_context{real, 1}),
                     plain_step_context{real, 2});
    };
    check(support::gradient_of<0b1111>(third, random({4, 7}, 7), random({4, 7}, 8), random({4, 7}, 9), r));
}

TEST_CASE("a masked position is not read: NaN in its derivative stays there")
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

TEST_CASE("shapes that do not fit are rejected")
{
    const auto e = random({2, 4}, 1);
    const lengths real{4, 2};
    CHECK_THROWS_WITH_AS(ops::monotonic(e, array<double, 1>{1.0, 2.0}, e, real), doctest::Contains("bias"),
                         shape_error);
    CHECK_THROWS_WITH_AS(ops::monotonic(e, r, random({2, 3}, 1), real), doctest::Contains("alignment"), shape_error);
    CHECK_THROWS_WITH_AS(ops::first_stop(e, r, random({1, 4}, 1), real), doctest::Contains("alignment"), shape_error);
    CHECK_THROWS_WITH_AS(ops::mocha(random({2, 3}, 1), e, s, 2, real), doctest::Contains("alignment"), shape_error);
    CHECK_THROWS_WITH_AS(ops::mocha(e, e, array<double, 1>(shape_of_rank<1>{0}), 2, real), doctest::Contains("scale"),
                         shape_error);
    CHECK_THROWS_AS(ops::monotonic(e, r, e, lengths{5, 2}), shape_error);
    CHECK(ops::monotonic(random({2, 0}, 1), r, random({2, 0}, 1), lengths{0, 0}).size() == 0);
    CHECK(ops::mocha(random({0, 4}, 1), random({0, 4}, 1), s, 2, lengths{}).size() == 0);
    const attention attend{score::dot{}, normalize::chunkwise{0, s, normalize::monotonic{r}}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 4, 3}, 1), real);
    CHECK_THROWS_WITH_AS(attend.step(memory, random({2, 3}, 2), attend.start(memory)), doctest::Contains("chunk"),
                         error);
}

TEST_CASE("monotonic normalizers satisfy the contracts, per position and per dimension")
{
    const auto W = random({3, 4}, 11), U = random({5, 4}, 12), V = random({4, 5}, 13);
    const auto v = random({4}, 14, 2.0);
    const auto check = [](const verification& report) { CHECK_MESSAGE(bool(report), report.text()); };
    const verification_sizes sizes{.query = 3, .width = 5};
    const auto per_position = [&](const auto& policy) {
        check(verify(attention{score::additive{W, U, v}, policy, combine::weighted_sum{}}, sizes));
    };
    const auto per_dimension = [&](const auto& policy) {
        check(verify(attention{score::additive_per_dimension{W, U, V}, policy, combine::elementwise_sum{}}, sizes));
    };
    // Every policy is tested with both kinds of weights; nested policies are divided between the two.
    per_position(normalize::monotonic{r});
    per_dimension(normalize::monotonic{r});
    per_position(normalize::monotonic_hard{r});
    per_dimension(normalize::monotonic_hard{r});
    per_position(normalize::chunkwise{2, s, normalize::noisy{0.5, 3, normalize::monotonic{r}, {.at_inference = true}}});
    per_dimension(
        normalize::local_m{2, normalize::chunkwise{2, s, normalize::monotonic{r}}, normalize::history::in_window{}});
    per_position(normalize::local_m{1, normalize::monotonic{r}});
    per_dimension(normalize::noisy{0.5, 3, normalize::local_m{1, normalize::sigmoid{}}, {.at_inference = true}});
}
