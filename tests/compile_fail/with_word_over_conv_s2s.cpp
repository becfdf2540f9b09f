// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: score::with_word wraps a score that already adds the target word .*: remove this with_word
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& annotations, const array<float, 2>& query, const array<float, 2>& W,
         const array<float, 1>& b)
{
    const attention attend{score::with_word{score::conv_s2s{W, b}, W}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, state_and_word{query, query},
                       attend.start(memory));  // a word for with_word, but not for conv_s2s
}
