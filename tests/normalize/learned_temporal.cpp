// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/learned_temporal.hpp>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/mechanism_tests.hpp>
#include <support/scalar_weights.hpp>
#include <support/temporal_family.hpp>
#include <support/tensors.hpp>

using namespace heed;
namespace scalar = support::scalar;
using namespace support::temporal_family;

TEST_CASE("learned_temporal matches its equation")
{
    for (const double w : {0.0, -2.0, 0.7})
        check_values(normalize::learned_temporal{array<double, 1>{w}}, scalar::learned_temporal(w));
}

TEST_CASE("learned_temporal satisfies the contracts")
{
    check_mechanism(normalize::learned_temporal{array<double, 1>{-1.3}});
}
