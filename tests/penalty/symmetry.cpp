// SPDX-License-Identifier: BSD-3-Clause
#include <heed/penalty/symmetry.hpp>
#include <support/gradients.hpp>
#include <support/tensors.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace heed;
using support::random;

namespace {

const std::size_t T = 4, S = 3;
const lengths source{4, 2, 0}, target{2, 3, 1};

/// The weights of each step as slices of one tensor [steps,B,positions].
auto steps_of(const auto& all)
{
    std::vector<decltype(ops::block(all, 0u))> steps;
    for (std::size_t s = 0; s < shape_of(all)[0]; ++s) steps.push_back(ops::block(all, s));
    return steps;
}

}  // namespace

TEST_CASE("symmetry: the penalty is the negated sum of products over the real words of both sides")
{
    const auto there = random({S, 3, T}, 1), back = random({T, 3, S}, 2);
    double must = 0;
    for (std::size_t b = 0; b < 3; ++b) {
        for (std::size_t j = 0; j < target[b]; ++j) {
            for (std::size_t i = 0; i < source[b]; ++i) must -= there(j, b, i) * back(i, b, j);
        }
    }
    CHECK(support::number(penalty::symmetry(steps_of(there), steps_of(back), source, target)) ==
          doctest::Approx(must).epsilon(1e-13));
}

TEST_CASE("symmetry: gradients of the weights of both directions are correct")
{
    CHECK_GRADIENT([](const auto& there,
                      const auto& back) { return penalty::symmetry(steps_of(there), steps_of(back), source, target); },
                   random({S, 3, T}, 1), random({T, 3, S}, 2));
}
