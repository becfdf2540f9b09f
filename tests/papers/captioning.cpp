// SPDX-License-Identifier: BSD-3-Clause
#include <heed/papers/captioning.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <support/recurrent_presets.hpp>
#include <support/tensors.hpp>

using namespace heed;
namespace paper = heed::papers;
using support::random;
using namespace support::recurrent_presets;

TEST_CASE("Xu et al. 2015")
{
    namespace xu = paper::xu2015;
    const auto W_beta = random({Q, 1}, 60);
    const auto b_beta = random({1}, 61);
    const score::additive score{W, U, v};
    check_same(xu::soft(W, U, v), attention{score, normalize::softmax{}, combine::weighted_sum{}}, state_of);
    check_same(xu::gated(W, U, v, W_beta, b_beta),
               attention{score, normalize::softmax{}, combine::gated{W_beta, b_beta}}, state_of);
    check_same(xu::hard(W, U, v, 7), attention{score, normalize::hard{7}, combine::weighted_sum{}}, state_of);
    check_same(xu::hard(W, U, v, {.seed = 7, .greedy = true}),
               attention{score, normalize::hard{.seed = 7, .greedy = true}, combine::weighted_sum{}}, state_of);

    CHECK(once(xu::soft(number(1), number(1), single(2)), number(1)) == about(weight(tanh_lead)));
    CHECK(once(xu::gated(number(1), number(1), single(2), number(0), single(0)), number(1)) ==
          about(weight(tanh_lead) / 2));
    CHECK(once(xu::hard(number(1), number(1), single(2), {.greedy = true}), number(1)) == 1);
    // 2 ((1 - 0.75)² + (1 - 0.25)²)
    auto seen = filled<double, 2>({1, 2}, 0.75);
    seen(0, 1) = 0.25;
    CHECK(xu::doubly_stochastic(std::vector{seen}, {2}, {1}, 2.0)() == about(1.25));
}
