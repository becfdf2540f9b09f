// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: this state was made by the plain score::with_gated_coverage, .* lifted\.start
#include <heed/heed.hpp>

using namespace heed;

using unit = nn::gated_coverage<array<float, 2>, array<float, 1>>;
using gated = score::with_gated_coverage<score::dot, array<float, 2>, unit>;

// The annotations' contribution would come from the plain W, and the gradient of W would be exactly 0.
auto use(ad::tape<float>& on, const attention<gated, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 3>& annotations, const array<float, 2>& query)
{
    const auto memory = attend.on(annotations);
    const auto state = attend.start(memory);
    const auto lifted = ad::lift(on, attend);
    return lifted.step(memory, query, state);
}
