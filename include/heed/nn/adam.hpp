// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Deprecated: this header is now <heed/train/adam.hpp>, its names are in heed::train. The old ones work for one
// version.
#include <heed/nn/gradient_norm.hpp>
#include <heed/train/adam.hpp>

namespace heed::nn {
using train::adam;
}  // namespace heed::nn
