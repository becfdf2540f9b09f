// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: this state was made by the plain score::with_fertility, .* lifted\.start
#include <heed/heed.hpp>

using namespace heed;

using fertile = score::with_fertility<score::dot, array<float, 1>>;

// The fertility would come from the plain U_f, and the gradient of U_f would be exactly 0.
auto use(ad::tape<float>& on, const attention<fertile, normalize::softmax, combine::weighted_sum>& attend,
         const array<float, 3>& annotations, const array<float, 2>& query)
{
    const auto memory = attend.on(annotations);
    const auto state = attend.start(memory);
    const auto lifted = ad::lift(on, attend);
    return lifted.step(memory, query, state);
}
