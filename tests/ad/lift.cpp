// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/lift.hpp>

#include <heed/ad/ad.hpp>
#include <heed/score/additive.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

using namespace heed;
using support::random;

TEST_CASE("lifting copies no weight, a constant is a copy, a block shares memory")
{
    const score::additive model{random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)};
    ad::tape<double> on;
    const auto lifted = ad::lift(on, model);
    CHECK(lifted.W.data() == model.W.data());
    CHECK(lifted.U.data() == model.U.data());
    CHECK(lifted.v.data() == model.v.data());
    CHECK(on.entries() == 0);  // until an operation reads them

    array<double, 2> source{{1.0, 2.0}};
    const auto constant = on.constant(source);
    source(0, 1) = 7;
    CHECK(constant.data()[1] == 2.0);

    const auto whole = random({3, 2, 4}, 4);
    const auto x = on.parameter(whole);
    const auto piece = ops::block(x, std::size_t{2});
    CHECK(piece.data() == whole.data() + 16);
    CHECK(piece.shape() == shape_of_rank<2>{2, 4});
}
