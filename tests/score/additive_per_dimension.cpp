// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/additive_per_dimension.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>

#include <support/scores.hpp>

using namespace heed;
using support::random;
namespace scalar = support::scalar;

TEST_CASE("additive per dimension: its equation, gradient and contracts")
{
    const auto make = [](std::size_t Q, std::size_t D) {
        const std::size_t A = support::hidden_units(D);
        return score::additive_per_dimension{random({Q, A}, 21), random({D, A}, 22), random({A, D}, 24)};
    };
    const auto equation = [&](std::size_t Q, std::size_t D) {
        const auto score = make(Q, D);
        return scalar::additive_per_dimension(scalar::matrix_of(score.W), scalar::matrix_of(score.U),
                                              scalar::matrix_of(score.V));
    };
    support::check_score(make, equation, [](std::size_t Q, std::size_t) { return support::plain_query{Q}; });
}

TEST_CASE("a V with equal columns is additive attention")
{
    constexpr std::size_t Q = 3, D = 5, A = 4;
    const auto W = random({Q, A}, 1), U = random({D, A}, 2);
    const auto v = random({A}, 6);
    array<double, 2> columns(shape_of_rank<2>{A, D});
    for (std::size_t a = 0; a < A; ++a) std::fill_n(&columns(a, 0), D, v(a));
    const auto q = random({2, Q}, 4);
    const auto h = random({2, 6, D}, 5);
    const attention fine{score::additive_per_dimension{W, U, columns}, normalize::softmax{},
                         combine::elementwise_sum{}};
    const attention coarse{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto one = fine.on(h), other = coarse.on(h);
    CHECK(support::distance(fine.step(one, q, fine.start(one)).context,
                            coarse.step(other, q, coarse.start(other)).context) < 1e-14);
    support::says(
        [&] {
            fine.step(one, random({2, Q + 1}, 4), fine.start(one));
        },
        "linear: x is [2,4] and the matrix is [3,4]");
}
