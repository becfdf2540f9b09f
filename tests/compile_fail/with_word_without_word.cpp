// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: score::with_word needs a query of two tensors: state_and_word.s, y.
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& annotations, const array<float, 2>& query, const array<float, 2>& W,
         const array<float, 1>& v)
{
    const attention attend{score::with_word{score::additive{W, W, v}, W}, normalize::softmax{},
                           combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory));  // the state without a word
}
