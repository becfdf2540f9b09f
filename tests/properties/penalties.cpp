// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <heed/penalty/coverage.hpp>
#include <heed/penalty/doubly_stochastic.hpp>
#include <heed/penalty/guided_alignment.hpp>
#include <heed/penalty/monotone.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <limits>
#include <vector>

// Every loss on the weights of all steps, compared with loops over the papers' formulas.

using namespace heed;
using support::contains;
using support::message_of;
using support::random;

namespace {

template <class T = double>
using path = std::vector<array<T, 2>>;  // [B,T] of each step

/// Softmax weights over each row's real positions; NaN in the padding, which must not be read.
path<> weights_of(const lengths& source, std::size_t positions, std::size_t steps)
{
    path<> weights;
    for (std::size_t s = 0; s < steps; ++s) {
        weights.push_back(ops::softmax(random({source.batch(), positions}, 60 + s, 2), source));
        for (std::size_t b = 0; b < source.batch(); ++b) {
            for (std::size_t t = source[b]; t < positions; ++t) weights[s](b, t) = std::nan("");
        }
    }
    return weights;
}

double doubly_stochastic(const path<>& a, const lengths& source, const lengths& target)
{
    double loss = 0;
    for (std::size_t b = 0; b < source.batch(); ++b) {
        for (std::size_t i = 0; i < source[b]; ++i) {
            double sum = 0;
            for (std::size_t t = 0; t < target[b]; ++t) sum += a[t](b, i);
            loss += (1 - sum) * (1 - sum);
        }
    }
    return loss;
}

double coverage(const path<>& a, const lengths& source, const lengths& target)
{
    double loss = 0;
    for (std::size_t b = 0; b < source.batch(); ++b) {
        for (std::size_t t = 0; t < target[b]; ++t) {
            for (std::size_t i = 0; i < source[b]; ++i) {
                double before = 0;
                for (std::size_t k = 0; k < t; ++k) before += a[k](b, i);
                loss += std::min(a[t](b, i), before);
            }
        }
    }
    return loss;
}

/// As in the paper, with cumulative weights.
double monotone(const path<>& a, const lengths& source, const lengths& target)
{
    double loss = 0;
    for (std::size_t b = 0; b < source.batch(); ++b) {
        for (std::size_t t = 1; t < target[b]; ++t) {
            double sum = 0;
            for (std::size_t e = 0; e < source[b]; ++e) {
                for (std::size_t i = 0; i <= e; ++i) sum += a[t](b, i) - a[t - 1](b, i);
            }
            loss += std::max(0.0, sum);
        }
    }
    return loss;
}

double guided(const path<>& a, const array<double, 3>& links, const lengths& source, const lengths& target)
{
    double loss = 0;
    for (std::size_t b = 0; b < source.batch(); ++b) {
        for (std::size_t t = 0; t < target[b]; ++t) {
            for (std::size_t i = 0; i < source[b]; ++i) loss -= links(b, t, i) * std::log(a[t](b, i));
        }
    }
    return loss;
}

const auto near = [](double x) { return doctest::Approx(x).epsilon(1e-13); };

}  // namespace

TEST_CASE("values match loops: padding on both sides, one word, empty sentences, one step")
{
    const auto check = [](const lengths& source, const lengths& target, std::size_t positions, std::size_t steps) {
        const auto a = weights_of(source, positions, steps);
        auto links = random({source.batch(), steps, positions}, 70);
        for (double& x : links) x = std::abs(x);
        CHECK(support::number(penalty::doubly_stochastic(a, source, target)) ==
              near(doubly_stochastic(a, source, target)));
        CHECK(support::number(penalty::coverage(a, source, target)) == near(coverage(a, source, target)));
        CHECK(support::number(penalty::monotone(a, source, target)) == near(monotone(a, source, target)));
        CHECK(support::number(penalty::guided_alignment(a, links, source, target)) ==
              near(guided(a, links, source, target)));

        const auto all = lengths::full(source.batch(), steps);
        CHECK(support::number(penalty::doubly_stochastic(a, source)) == near(doubly_stochastic(a, source, all)));
        CHECK(support::number(penalty::coverage(a, source)) == near(coverage(a, source, all)));
        CHECK(support::number(penalty::monotone(a, source)) == near(monotone(a, source, all)));
        CHECK(support::number(penalty::guided_alignment(a, links, source)) == near(guided(a, links, source, all)));
    };
    check({5, 2, 0, 1}, {4, 2, 3, 0}, 5, 4);
    check({7, 6}, {6, 5}, 7, 6);
    check({1}, {1}, 1, 1);
    check({1, 3}, {1, 1}, 3, 1);
    check({0}, {2}, 0, 2);
    check({2, 2}, {0, 0}, 2, 3);
}

TEST_CASE("float, and summed over the batch")
{
    const lengths source{5, 5}, target{3, 3};
    const auto a = weights_of(source, 5, 3);
    path<float> single;
    for (const auto& step : a) single.push_back(support::converted<float>(step));
    CHECK(support::number(penalty::doubly_stochastic(single, source, target)) ==
          doctest::Approx(support::number(penalty::doubly_stochastic(a, source, target))).epsilon(1e-5));
    CHECK(support::number(penalty::coverage(single, source, target)) ==
          doctest::Approx(support::number(penalty::coverage(a, source, target))).epsilon(1e-5));
    CHECK(support::number(penalty::monotone(single, source, target)) ==
          doctest::Approx(support::number(penalty::monotone(a, source, target))).epsilon(1e-5));
    const std::vector<penalty::links> links{{{4, 2}}, {{0, 0}}};
    CHECK(support::number(penalty::guided_alignment(single, links, source, target)) ==
          doctest::Approx(support::number(penalty::guided_alignment(a, links, source, target))).epsilon(1e-5));

    path<> twice;
    for (const auto& step : a) {
        array<double, 2> both(shape_of_rank<2>{4, 5});
        std::copy_n(step.data(), 10, both.data());
        std::copy_n(step.data(), 10, both.data() + 10);
        twice.push_back(both);
    }
    CHECK(support::number(penalty::coverage(twice, lengths::full(4, 5))) ==
          near(2 * support::number(penalty::coverage(a, source))));
}

TEST_CASE("size mismatches are reported with names and numbers")
{
    const auto a = weights_of(lengths{3, 3}, 3, 2);
    const std::vector<penalty::links> outside{{{3, 0}}, {}}, late{{}, {{0, 2}}}, negative{{{-1, 0}}, {}};
    CHECK(message_of<shape_error>([&] {
              penalty::coverage(path<>{}, lengths{3, 3});
          }) == "stack: nothing to stack; give at least one tensor");
    CHECK(contains(message_of<shape_error>([&] {
                       penalty::coverage(a, lengths{3, 4});
                   }),
                   "penalty, source: the length of row 1 is 4"));
    CHECK(contains(message_of<shape_error>([&] {
                       penalty::monotone(a, lengths{3, 3}, lengths{2, 3});
                   }),
                   "penalty, target: the length of row 1 is 3"));
    CHECK(contains(message_of<shape_error>([&] { penalty::doubly_stochastic(a, lengths{3}); }), "penalty, source"));
    CHECK(message_of<shape_error>([&] {
              penalty::guided_alignment(a, outside, lengths{3, 3});
          }) == "guided_alignment: the link 3-0 of row 0 is outside the 3 source positions and 2 target steps");
    CHECK(contains(message_of<shape_error>([&] { penalty::guided_alignment(a, late, lengths{3, 3}); }), "link 0-2"));
    CHECK(contains(message_of<shape_error>([&] {
                       penalty::guided_alignment(a, negative, lengths{3, 3});
                   }),
                   "link -1-0"));
    CHECK(contains(message_of<shape_error>([&] {
                       penalty::guided_alignment(a, random({2, 3, 3}, 1), lengths{3, 3});
                   }),
                   "guided_alignment: the matrix of links is [2,3,3] but must be [2,2,3]"));
}
