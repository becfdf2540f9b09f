// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/core/parallel.hpp>
#include <heed/kernels/softmax.hpp>

/// The sentences of a batch at one step of a recurrent layer.
namespace heed::kernels::detail {

/// f(b, over) for every sentence b; it is over if the step lies at its length or beyond. `at` has `batch`, `width`,
/// `lengths` and `step`. Threads share the sentences.
template <class Step, class F>
inline void each_sentence(const Step& at, F&& f)
{
    parallel_for(at.batch, rows_a_shard(at.width, std::size_t{1} << 14),
                 [&](std::size_t begin, std::size_t end, std::size_t) {
                     for (std::size_t b = begin; b < end; ++b) {
                         f(b, at.lengths != nullptr && at.step >= at.lengths[b]);
                     }
                 });
}

}  // namespace heed::kernels::detail
