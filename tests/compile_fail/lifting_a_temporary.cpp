// SPDX-License-Identifier: BSD-3-Clause
// expect: deleted function.*lift
#include <heed/heed.hpp>

// The same for a model: its weights must outlive the recording.
auto use(heed::ad::tape<float>& on, const heed::array<float, 2>& W)
{
    return heed::ad::lift(on, heed::score::general{W});
}
