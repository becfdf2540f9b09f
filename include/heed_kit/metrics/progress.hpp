// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace heed::inline HEED_TARGET::metrics {

/// Called on the calling thread while a metric processes many sentences or resamples: `done` of `all` are complete. The
/// last call has done == all.
using progress = std::function<void(std::size_t done, std::size_t all)>;

namespace detail {

/// Runs work(begin, end) over [0, count) on heed's threads, `size` items at a time per thread; `seen` is called in
/// between.
template <class Work>
void in_pieces(std::size_t count, std::size_t size, const progress& seen, const Work& work)
{
    for (std::size_t begin = 0; begin < count;) {
        const std::size_t end = begin + std::min(count - begin, size * threads());
        parallel_for(end - begin, 1,
                     [&](std::size_t first, std::size_t last, std::size_t) { work(begin + first, begin + last); });
        begin = end;
        if (seen) seen(end, count);
    }
}

/// The statistics of each sentence: `judge(i)` returns the statistics of sentence i. Each thread uses a copy of
/// `judge`.
template <class Statistics, class Judge>
std::vector<Statistics> of_each_sentence(std::size_t sentences, const progress& seen, const Judge& judge)
{
    std::vector<Statistics> result(sentences);
    in_pieces(sentences, 1024, seen, [&](std::size_t begin, std::size_t end) {
        Judge own = judge;
        for (std::size_t i = begin; i < end; ++i) result[i] = own(i);
    });
    return result;
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET::metrics
