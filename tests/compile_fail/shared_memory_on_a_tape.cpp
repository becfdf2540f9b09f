// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a shared_memory takes plain tensors only; on a tape use a memory with a row for each query
#include <heed/heed.hpp>

using namespace heed;

auto use(ad::tape<float>& on, const attention<score::dot, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 3>& annotations, const array<float, 2>& query)
{
    const auto memory = attend.on(annotations);
    const shared_memory shared(memory, {0, 0});
    return attend.step(shared, on.parameter(query), attend.start(shared));
}
