// SPDX-License-Identifier: BSD-3-Clause
#include <heed/policy/check.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

using namespace heed;

TEST_CASE("composition faults are identified")
{
    using normalize::softmax;
    CHECK(fault_of<score::dot, softmax, combine::weighted_sum>() == composition_fault::none);
    CHECK(fault_of<score::dot, softmax, combine::elementwise_sum>() == composition_fault::different_weights);
    CHECK(fault_of<int, softmax, combine::weighted_sum>() == composition_fault::no_score);
    CHECK(fault_of<score::dot, lengths, combine::weighted_sum>() == composition_fault::no_normalizer);
    CHECK(fault_of<score::dot, softmax, int>() == composition_fault::no_combiner);
    CHECK(fault_of<score::dot, normalize::ratio, combine::weighted_sum>() == composition_fault::negative_scores);
    using delta = combine::delta_rule<array<float, 2>, array<float, 1>>;
    using gated = combine::gated<array<float, 2>, array<float, 1>, delta>;
    CHECK(fault_of<score::cosine<>, normalize::retention, delta>() == composition_fault::none);
    CHECK(fault_of<score::cosine<>, softmax, delta>() == composition_fault::no_products);
    CHECK(fault_of<score::match, normalize::retention, gated>() == composition_fault::no_products);
    CHECK(fault_of<score::kernel<score::elu_plus_one>, normalize::ratio, delta>() == composition_fault::no_products);
    CHECK(fault_of<score::kernel<score::elu_plus_one>, normalize::ratio, combine::weighted_sum>() ==
          composition_fault::none);
}
