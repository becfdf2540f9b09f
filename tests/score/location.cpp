// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/location.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include <support/gradients.hpp>
#include <support/scores.hpp>

using namespace heed;
using support::check_promises;
using support::random;
using support::says;
using support::soft;
namespace scalar = support::scalar;
using scalar::numbers;

TEST_CASE("location: its gradient and contracts")
{
    check_promises(score::location{random({3, 24}, 51)}, support::plain_query{3});
}

TEST_CASE("location: a word is added to the projected query")
{
    const auto W = random({3, 7}, 1), Y = random({2, 7}, 52), q = random({2, 3}, 2), y = random({2, 2}, 4);
    const lengths real{7, 3};
    const auto attend = soft(score::with_word{score::location{W}, Y});
    const auto memory = attend.on(random({2, 7, 5}, 3), real);
    const auto e = ops::add(ops::linear(q, W), ops::linear(y, Y));
    CHECK(support::distance(attend.step(memory, state_and_word{q, y}, attend.start(memory)).weights,
                            ops::softmax(e, real)) < 1e-14);
}

TEST_CASE("location: scores depend only on the query, not on the annotations")
{
    const auto W = random({3, 7}, 1), q = random({2, 3}, 2);
    const auto attend = soft(score::location{W});
    const auto check = [&](std::size_t T, const lengths& real) {
        const auto h = random({2, T, 5}, 3);
        const auto memory = attend.on(h, real);
        const auto now = attend.step(memory, q, attend.start(memory));
        for (std::size_t b = 0; b < 2; ++b) {
            numbers e(T);
            double sum = 0;
            for (std::size_t j = 0; j < real[b]; ++j) {
                for (std::size_t i = 0; i < 3; ++i) e[j] += q(b, i) * W(i, j);
                sum += std::exp(e[j]);
            }
            for (std::size_t j = 0; j < T; ++j) {
                CHECK(now.weights(b, j) == doctest::Approx(j < real[b] ? std::exp(e[j]) / sum : 0.0).epsilon(1e-14));
            }
        }
        const auto elsewhere = attend.on(random({2, T, 5}, 4), real);
        CHECK(support::same_bits(attend.step(elsewhere, q, attend.start(elsewhere)).weights, now.weights));
    };
    check(7, {7, 3});
    check(4, {2, 0});
    check(1, {1, 1});

    says(
        [&] {
            attend.on(random({2, 8, 5}, 3));
        },
        "score::location: 8 positions but W is [3,7], with columns for at most 7; make W as wide as the longest "
        "sentence, or truncate the annotations");

    const auto some = [&](std::size_t T) { return attend.on(random({2, T, 5}, 3)); };
    const auto whole = some(7),
               grown = attend.extend(attend.extend(some(2), random({2, 4, 5}, 5)), random({2, 1, 5}, 6));
    CHECK(support::same_bits(attend.step(grown, q, attend.start(grown)).weights,
                             attend.step(whole, q, attend.start(whole)).weights));
    says(
        [&] {
            (void)attend.extend(grown, random({2, 1, 5}, 7));
        },
        "score::location: 8 positions but W is [3,7], with columns for at most 7; make W as wide as the longest "
        "sentence, or truncate the annotations");

    // A range of keys gives the same range of scores: in a window, a position keeps its index.
    const auto keys = attend.score.prepare(random({2, 7, 5}, 3));
    window where;
    where.begin = {2, 6};
    where.count = lengths{3, 1};
    where.width = 3;
    const auto e = attend.score(q, keys), part = attend.score(q, ops::window_of(keys, where));
    for (std::size_t j = 0; j < 3; ++j) CHECK(part(0, j) == e(0, 2 + j));
    CHECK(part(1, 0) == e(1, 6));
}

TEST_CASE("gather: the numbers in the given columns")
{
    const auto x = random({2, 4}, 1);
    const array<double, 3> at{{{2}, {0}, {2}}, {{3}, {3}, {1}}};
    const auto y = ops::gather(x, at);
    CHECK(y(0, 0) == x(0, 2));
    CHECK(y(0, 1) == x(0, 0));
    CHECK(y(1, 1) == x(1, 3));
    CHECK(y(1, 2) == x(1, 1));
    CHECK_GRADIENT([&](const auto& v) { return ops::gather(v, at); }, x);
    says([&] { ops::gather(random({2, 3}, 1), at); }, "of [2,3], which has 3 columns");
    says([&] { ops::gather(random({3, 4}, 1), at); }, "[3,4] but must be [2,4]");
    says([&] { ops::gather(x, array<double, 3>{{{-1.0}}, {{0.0}}}); }, "gather: position -1");
}
