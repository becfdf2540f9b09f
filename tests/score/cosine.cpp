// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/cosine.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include <support/scores.hpp>

using namespace heed;
using support::check_equation;
using support::check_promises;
using support::random;
using support::soft;
namespace scalar = support::scalar;
using scalar::numbers;

namespace {

double cosine_of(const numbers& a, const numbers& b)
{
    return scalar::inner(a, b) / std::sqrt(scalar::inner(a, a) * scalar::inner(b, b));
}

}  // namespace

TEST_CASE("cosine: its equation, gradient and contracts, also with a learned scale and with a word")
{
    const auto plain = [](std::size_t, std::size_t D) { return support::plain_query{D}; };
    const auto thrice = [](std::size_t, std::size_t) {
        return [](const auto& q, const auto& h) { return numbers{3 * cosine_of(q[0], h)}; };
    };
    const score::cosine<> given{.scale = 3};
    const score::cosine learned{array<double, 1>{3}};
    // A constant and a learned scale differ in one multiplication of the query.
    support::check_values(soft(given), thrice(5, 5), false, plain(5, 5), 5);
    check_equation([&](std::size_t, std::size_t) { return learned; }, thrice, plain);
    check_promises(learned, support::plain_query{5});

    // Contracts of words over scores that do not project the query: score::with_word over dot.
    const auto Y = random({2, 5}, 43);
    const auto with_word = [Y = scalar::matrix_of(Y)](const auto& q, const auto& h) {
        return numbers{cosine_of(scalar::plus(q[0], scalar::times(q[1], Y)), h)};
    };
    support::check_values(soft(score::with_word{score::cosine{}, Y}), with_word, false, support::query_with_word{5, 2},
                          5);
}

TEST_CASE("cosine: scores of -scale to scale, and 0 for a vector of length 0")
{
    const score::cosine<> cosine{.scale = 10};
    const array<double, 2> q{{3, 4}, {0, 0}, {1e200, 0}};
    const array<double, 3> h{{{6, 8}, {-3e-200, -4e-200}, {0, 0}}, {{1, 2}, {0, 0}, {5, 5}}, {{1, 1}, {-2, 0}, {0, 1}}};
    const auto e = cosine(q, cosine.prepare(h));
    const array<double, 2> must{{10, -10, 0}, {0, 0, 0}, {10 / std::sqrt(2.0), -10, 0}};
    CHECK(support::distance(e, must) < 1e-15);

    ad::tape<double> on;
    const auto query = on.parameter(q);
    const auto annotations = on.parameter(h);
    const auto memory = soft(cosine).on(annotations);
    const auto now = soft(cosine).step(memory, query, soft(cosine).start(memory));
    on.backward(ops::dot(now.weights, support::uneven(now.weights.shape())));
    CHECK(support::all_finite(on.gradient(query)));
    CHECK(support::all_finite(on.gradient(annotations)));
    CHECK(on.gradient(query).data[2] == 0);
    CHECK(on.gradient(query).data[3] == 0);
    CHECK(on.gradient(annotations).data[4] == 0);  // the zero annotation of the first row
    CHECK(on.gradient(annotations).data[5] == 0);
    CHECK(on.gradient(annotations).data[0] != 0);
}
