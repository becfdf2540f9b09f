// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: a parameter is a view of constant numbers, which no optimizer may change
#include <heed/heed.hpp>
#include <heed/train/sgd.hpp>

#include <vector>

using namespace heed;

void use(const std::vector<float>& weights, ad::tape<float>& tape)
{
    score::general score{view_of(weights, 2, 3)};
    const auto lifted = ad::lift(tape, score);
    train::sgd<float> optimizer;
    optimizer.step(score, lifted, tape);
}
