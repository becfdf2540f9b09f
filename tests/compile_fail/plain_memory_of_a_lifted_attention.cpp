// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: this memory was made by the plain mechanism, so the parameters that made its keys .* lifted\.on
#include <heed/heed.hpp>

using namespace heed;

// It would train but leave the gradient of U exactly 0.
auto use(ad::tape<float>& on,
         const attention<score::additive<array<float, 2>, array<float, 1>>, normalize::softmax, combine::weighted_sum>&
             attend,
         const array<float, 3>& annotations, const array<float, 3>& queries)
{
    const auto memory = attend.on(annotations);
    const auto lifted = ad::lift(on, attend);
    return lifted(memory, queries);
}
