// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: a KV cache takes plain tensors only; on a tape extend the memory that `on` made
#include <heed/heed.hpp>

using namespace heed;

auto use(ad::tape<float>& on, const attention<score::dot, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 3>& annotations, const array<float, 3>& queries)
{
    const auto memory = with_cache(attend.on(annotations));
    return attend(memory, on.parameter(queries), causal{});
}
