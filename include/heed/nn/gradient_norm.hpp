// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Deprecated: this header is now <heed/train/gradient_norm.hpp>, its names are in heed::train. The old ones work for
// one version.
#include <heed/train/gradient_norm.hpp>

namespace heed::nn {
using train::clip_factor;
using train::clip_gradient;
using train::gradient_norm;
}  // namespace heed::nn
