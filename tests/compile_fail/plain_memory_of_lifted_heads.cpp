// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: this memory was made by the plain mechanism, so the parameters that made its keys .* lifted\.on
#include <heed/heed.hpp>

#include <vector>

using namespace heed;

using head = attention<score::dot, normalize::softmax, combine::weighted_sum>;

// It would train but leave the gradients of W_K and W_V exactly 0.
auto use(ad::tape<float>& on, const multi_head<std::vector<head>, array<float, 2>>& attend,
         const array<float, 3>& annotations, const array<float, 2>& query)
{
    const auto memory = attend.on(annotations);
    const auto lifted = ad::lift(on, attend);
    return lifted.step(memory, query, lifted.start(memory));
}
