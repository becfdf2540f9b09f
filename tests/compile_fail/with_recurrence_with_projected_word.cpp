// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: this score reads the embedding of the word that was emitted last .`reads_word`., and a
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<double, 3>& annotations, const array<double, 2>& query, const array<double, 2>& W,
         const array<double, 1>& v)
{
    const attention attend{score::with_recurrence{score::additive{W, W, v}, W, nn::gru{W, v, W, W}},
                           normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, state_and_projected_word{query, query}, attend.start(memory));  // without y
}
