// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/all_pairs.hpp>

#include <limits>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

using namespace heed;
using support::random;

// The two matrix products of a sentence's queries and positions, compared with the operations on one query at a time
// and with finite differences.

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

const auto dot = [](const auto& q, const auto& k) { return ops::bmm_nt(q, k); };
const auto sum = [](const auto& w, const auto& h) { return ops::bmm(w, h); };

array<double, 2> query_of(const array<double, 3>& queries, std::size_t s) { return ops::step_of(queries, s); }

/// Row b of the result is row b · S + s of the input.
array<double, 2> rows_of(const array<double, 2>& all, std::size_t S, std::size_t s)
{
    array<double, 2> rows(shape_of_rank<2>{all.shape()[0] / S, all.shape()[1]});
    for (std::size_t b = 0; b < rows.shape()[0]; ++b) {
        for (std::size_t t = 0; t < rows.shape()[1]; ++t) rows(b, t) = all(b * S + s, t);
    }
    return rows;
}

}  // namespace

TEST_CASE("all pairs at once equal the pairs of each query")
{
    for (const auto& [B, S, T, D] :
         {std::array<std::size_t, 4>{2, 3, 5, 4}, {1, 1, 1, 1}, {3, 7, 1, 17}, {2, 1, 40, 9}}) {
        const auto q = random({B, S, D}, 1), k = random({B, T, D}, 2);
        const auto weights = random({B * S, T}, 3);
        const array<double, 2> scores = ops::bmm_nt(q, k);
        const array<double, 3> contexts = ops::bmm(weights, k);
        REQUIRE(scores.shape() == shape_of_rank<2>{B * S, T});
        REQUIRE(contexts.shape() == shape_of_rank<3>{B, S, D});
        for (std::size_t s = 0; s < S; ++s) {
            const array<double, 2> must = ops::dot_per_position(query_of(q, s), k), is = rows_of(scores, S, s);
            for (std::size_t i = 0; i < must.size(); ++i) CHECK(is.data()[i] == support::approx(must.data()[i]));
            const array<double, 2> context = ops::weighted_sum(rows_of(weights, S, s), k), at = query_of(contexts, s);
            for (std::size_t i = 0; i < at.size(); ++i) CHECK(at.data()[i] == support::approx(context.data()[i]));
        }
    }
}

TEST_CASE("gradients of all pairs")
{
    CHECK_GRADIENT(dot, random({2, 3, 4}, 1), random({2, 5, 4}, 2));
    CHECK_GRADIENT(dot, random({1, 1, 1}, 3), random({1, 1, 1}, 4));
    CHECK_GRADIENT(dot, random({3, 1, 7}, 5), random({3, 2, 7}, 6));
    CHECK_GRADIENT(sum, random({6, 5}, 1), random({2, 5, 4}, 2));
    CHECK_GRADIENT(sum, random({1, 1}, 3), random({1, 1, 1}, 4));
    CHECK_GRADIENT(sum, random({3, 2}, 5), random({3, 2, 7}, 6));
}

TEST_CASE("without positions, queries or sentences")
{
    CHECK(ops::bmm(random({4, 0}, 1), random({2, 0, 3}, 2)) == array<double, 3>(shape_of_rank<3>{2, 2, 3}, 0.0));
    CHECK(ops::bmm_nt(random({2, 0, 3}, 1), random({2, 5, 3}, 2)).size() == 0);
    CHECK(ops::bmm_nt(random({0, 4, 3}, 1), random({0, 5, 3}, 2)).shape() == shape_of_rank<2>{0, 5});
    CHECK(ops::bmm(random({0, 5}, 1), random({0, 5, 3}, 2)).shape() == shape_of_rank<3>{0, 0, 3});
}

TEST_CASE("a value without weight and gradient may be NaN")
{
    auto values = random({2, 3, 4}, 1);
    auto clean = values;
    for (const std::size_t b : {0u, 1u}) {
        for (std::size_t d = 0; d < 4; ++d) {
            values(b, 2, d) = not_a_number;
            clean(b, 2, d) = 0;
        }
    }
    auto weights = random({4, 3}, 2);
    for (std::size_t i = 0; i < 4; ++i) weights(i, 2) = 0;
    const array<double, 3> contexts = ops::bmm(weights, values), must = ops::bmm(weights, clean);
    for (std::size_t i = 0; i < must.size(); ++i) CHECK(contexts.data()[i] == support::approx(must.data()[i]));

    // A NaN key behind a mask: only the other keys contribute to the query's gradient.
    boolean_mask<2> mask(shape_of_rank<2>{4, 3});
    for (std::size_t i = 0; i < 12; ++i) mask[i] = i % 3 != 2 ? 1 : 0;
    const auto gradient = [&](const array<double, 3>& keys) {
        ad::tape<double> on;
        const auto queries = random({2, 2, 4}, 3);
        const auto q = on.parameter(queries);
        const auto w = ops::softmax(ops::masked_fill(ops::bmm_nt(q, keys), mask), lengths::full(4, 3));
        on.backward(ops::dot(w, support::uneven(shape_of_rank<2>{4, 3})));
        return array<double, 3>(copy_of(on.gradient(q)));
    };
    const auto is = gradient(values), without = gradient(clean);
    for (std::size_t i = 0; i < is.size(); ++i) CHECK(is.data()[i] == support::approx(without.data()[i]));
}

TEST_CASE("shapes that do not fit are rejected by name")
{
    CHECK_THROWS_WITH_AS(ops::bmm_nt(random({2, 3, 4}, 1), random({2, 5, 3}, 2)),
                         doctest::Contains("the queries are [2,3,4]"), shape_error);
    CHECK_THROWS_WITH_AS(ops::bmm(random({5, 3}, 1), random({2, 3, 4}, 2)), doctest::Contains("the weights are [5,3]"),
                         shape_error);
}
