// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/entmax15.hpp>

#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <support/normalizers.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

// sparsemax.cpp compares its values with bisection.

TEST_CASE("entmax15 is entmax with alpha = 1.5")
{
    const auto scores = random({3, 9}, 1, 2.0);
    const lengths real{9, 0, 4};
    const plain_step_context at{real};
    CHECK(support::distance(normalize::entmax15{}(scores, no_state{}, at),
                            normalize::entmax{array<double, 1>{0.0}}(scores, no_state{}, at)) < 1e-12);  // 1 + σ(0)
}

TEST_CASE("entmax15 satisfies the contracts") { support::normalizers::check_contracts_of(normalize::entmax15{}); }
