// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: an additive mask has no truth values
#include <heed/heed.hpp>

using namespace heed;

auto use(const additive_mask<array<float, 2>>& bias, const boolean_mask<2>& mask) { return mask | bias; }
