// SPDX-License-Identifier: BSD-3-Clause
// expect: deleted [a-z ]*function.*parameter
#include <heed/heed.hpp>

// The tape refers to a parameter's memory. That of a temporary would be gone before the first operation.
auto use(heed::ad::tape<float>& on) { return on.parameter(heed::array<float, 2>{{1.0f, 2.0f}}); }
