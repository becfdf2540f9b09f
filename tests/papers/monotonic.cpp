// SPDX-License-Identifier: BSD-3-Clause
#include <heed/papers/monotonic.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include <support/recurrent_presets.hpp>
#include <support/tensors.hpp>

using namespace heed;
namespace paper = heed::papers;
using support::random;
using namespace support::recurrent_presets;

TEST_CASE("Raffel et al. 2017")
{
    namespace raffel = paper::raffel2017;
    const auto r = single(-0.3);
    const score::additive score{W, U, v};
    check_same(raffel::monotonic(W, U, v, r), attention{score, normalize::monotonic{r}, combine::weighted_sum{}},
               state_of);
    check_same(raffel::monotonic_hard(W, U, v, r),
               attention{score, normalize::monotonic_hard{r}, combine::weighted_sum{}}, state_of);

    // r is such that p = 1/2 at the first position.
    const auto even = single(-2 * std::tanh(1.0));
    const double p = weight(tanh_lead);
    const auto [first, second] = twice(raffel::monotonic(number(1), number(1), single(2), even), number(1));
    CHECK(first.context(0, 0) == about(p / 2));
    CHECK(second.context(0, 0) == about(p * (0.25 + p / 2)));
    const auto below = single(-2 * std::tanh(1.0) - 0.1);
    CHECK(once(raffel::monotonic_hard(number(1), number(1), single(2), below), number(1)) == 1);
}

TEST_CASE("Chiu and Raffel 2018")
{
    namespace chiu = paper::chiu2018;
    const auto r = single(-0.3), s = single(0.7);
    const score::additive score{W, U, v};
    check_same(chiu::chunkwise(W, U, v, r, s, 2),
               attention{score, normalize::chunkwise{2, s, normalize::monotonic{r}}, combine::weighted_sum{}},
               state_of);
    check_same(chiu::chunkwise_hard(W, U, v, r, s, 2),
               attention{score, normalize::chunkwise{2, s, normalize::monotonic_hard{r}}, combine::weighted_sum{}},
               state_of);

    // The scan of the test above; softmax covers the stop position and the one before it.
    const auto even = single(-2 * std::tanh(1.0)), below = single(-2 * std::tanh(1.0) - 0.1);
    const double p = weight(tanh_lead);
    CHECK(once(chiu::chunkwise(number(1), number(1), single(2), even, single(1), 2), number(1)) == about(p / 2 * p));
    CHECK(once(chiu::chunkwise_hard(number(1), number(1), single(2), below, single(1), 2), number(1)) == about(p));
}

TEST_CASE("Graves 2013")
{
    const auto W_shapes = random({Q, 6}, 50), W_kappa = random({Q, 3}, 51);
    const auto b = random({6}, 52), b_kappa = random({3}, 53);
    check_same(paper::graves2013::window(W_shapes, b, W_kappa, b_kappa),
               attention{score::gaussian_mixture{W_shapes, b, W_kappa, b_kappa}, normalize::retention{},
                         combine::weighted_sum{}},
               state_of);

    // One window of height and width 1, which moves by one position per step, in the first step to the first word.
    const auto [first, second] =
        twice(paper::graves2013::window(filled<double, 2>({1, 2}, 0), filled<double, 1>({2}, 0), number(0), single(0)),
              number(1));
    CHECK(first.context(0, 0) == about(std::exp(-1.0)));
    CHECK(second.context(0, 0) == 1);
}
