// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/combine/weighted_sum.hpp>

namespace heed::combine {

/// The same weights for what was read from right to left and for what was read from left to right.
///
///     c = [Σ_j α_j ←h_j ; Σ_j α_j →h_j]       Sankaran et al. 2016, eq. 4 · SPEC C3
///
/// On annotations [←h;→h] this is the weighted sum, word for word; hence its other name.
using direction_split = weighted_sum;

}  // namespace heed::combine
