// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: score::conv_s2s needs a query of two tensors: state_and_word.h, g.
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& annotations, const array<float, 2>& query, const array<float, 2>& W,
         const array<float, 1>& b)
{
    const attention attend{score::conv_s2s{W, b}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory));  // the state without a word
}
