// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: this score reads the embedding of the word that was emitted last .`reads_word`., and a
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 3>& annotations, const array<float, 2>& query, const array<float, 2>& W,
         const array<float, 1>& v)
{
    const attention attend{
        score::with_coverage{score::with_word{score::additive{W, W, v}, W}, W, nn::coverage_gru{W, v, W}},
        normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    const auto words = attend.score.base.project_words(query);
    return attend.step(memory, state_and_projected_word{query, words}, attend.start(memory));  // Y y, but not y
}
