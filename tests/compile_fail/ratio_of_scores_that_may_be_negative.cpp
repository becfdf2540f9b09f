// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: this normalizer divides by the sum of the scores, so that no score may be negative
#include <heed/heed.hpp>

using namespace heed;

auto make() { return attention{score::dot{}, normalize::ratio{}, combine::weighted_sum{}}; }
