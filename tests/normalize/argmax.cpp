// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/argmax.hpp>

#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/hard.hpp>
#include <support/scalar_attention.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;
namespace scalar = support::scalar;
using namespace support::hard;

TEST_CASE("argmax, and hard and gumbel without noise: the first of the largest scores")
{
    const array<double, 2> scores{{1, 3, 3, 2}, {-infinity, -infinity, -5, 9}, {-infinity, -infinity, 1, 1}};
    const lengths real{4, 3, 2};
    const array<double, 2> expected{{0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 0}};
    CHECK(support::same_bits(weights_of(normalize::argmax{}, scores, real), expected));
    CHECK(support::same_bits(weights_of(normalize::hard{.greedy = true}, scores, real), expected));
    CHECK(support::same_bits(weights_of(normalize::gumbel{.greedy = true}, scores, real), expected));
    const auto soft =
        weights_of(normalize::gumbel{.tau = 0.5, .straight_through = false, .greedy = true}, scores, real);
    CHECK(support::distance(soft, normalize::softmax{}(ops::scale(scores, 2), no_state{}, plain_step_context{real})) <
          1e-15);

    array<double, 3> each(shape_of_rank<3>{1, 3, 2});
    each(0, 0, 0) = 2, each(0, 1, 0) = 5, each(0, 2, 0) = 5;
    each(0, 0, 1) = -1, each(0, 1, 1) = -2, each(0, 2, 1) = -3;
    const auto of_each = weights_of(normalize::argmax{}, each, {3});
    CHECK(diagonal_of(of_each.data(), 3, 2) == 1);
    CHECK(diagonal_of(of_each.data() + 1, 3, 2) == 0);
}

TEST_CASE("argmax satisfies the contracts") { check_contracts_of(normalize::argmax{}); }
