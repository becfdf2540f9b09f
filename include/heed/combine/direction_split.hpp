// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/combine/weighted_sum.hpp>

namespace heed::inline HEED_TARGET::combine {

/// The same weights for the annotations of both reading directions.
///
///     c = [Σ_j α_j ←h_j ; Σ_j α_j →h_j]       Sankaran et al. 2016, eq. 4
///
/// On annotations [←h;→h] this is exactly the weighted sum, hence an alias.
using direction_split = weighted_sum;

}  // namespace heed::inline HEED_TARGET::combine
