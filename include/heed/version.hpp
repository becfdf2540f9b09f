// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The single source of the version: CMake, pkg-config and the tests read it from here.
// 0.x uses semantic versioning as far as it applies: a new minor version may break code, a patch never does.
#define HEED_VERSION_MAJOR 0
#define HEED_VERSION_MINOR 3
#define HEED_VERSION_PATCH 0

/// 0.1.0 is 100, 1.2.3 is 10203: `#if HEED_VERSION >= 200` requires 0.2.0 or later.
#define HEED_VERSION (HEED_VERSION_MAJOR * 10000 + HEED_VERSION_MINOR * 100 + HEED_VERSION_PATCH)
#define HEED_VERSION_STRING "0.3.0"
