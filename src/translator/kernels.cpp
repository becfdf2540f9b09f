// SPDX-License-Identifier: BSD-3-Clause

#include "kernels.hpp"

namespace heed {

HEED_TRANSLATOR_KERNELS()

}  // namespace heed
