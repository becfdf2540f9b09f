// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>

namespace support {

/// Whether to test every combination, as in scripts/test.sh --exhaustive, rather than every pair of values.
inline bool exhaustive() { return std::getenv("HEED_TEST_EXHAUSTIVE") != nullptr; }

}  // namespace support
