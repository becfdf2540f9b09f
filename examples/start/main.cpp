// SPDX-License-Identifier: BSD-3-Clause
//
// start: a minimal program, to be copied with its CMakeLists.txt: docs/start/getting_started.md.
//
// test:

#include <cstdio>

#include <heed/heed.hpp>
using namespace heed;

int main()
{
    // One sentence of three words, two numbers each, and one query.   [B,T,D] = [1,3,2], [B,Q] = [1,2]
    const array<float, 3> words{{{1, 0}, {0, 1}, {1, 1}}};
    const array<float, 2> query{{2, 0}};

    attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(words);
    const auto seen = attend.step(memory, query, attend.start(memory));

    std::printf("weights %.3f %.3f %.3f\n", seen.weights(0, 0), seen.weights(0, 1), seen.weights(0, 2));
    std::printf("context %.3f %.3f\n", seen.context(0, 0), seen.context(0, 1));
}
