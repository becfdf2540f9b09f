// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Deprecated: this header is now <heed/attention/at_once.hpp>. The old path works for one version.
#include <heed/attention/at_once.hpp>
