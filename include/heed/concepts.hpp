// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Deprecated: this header is now <heed/attention/concepts.hpp>. The old path works for one version.
#include <heed/attention/concepts.hpp>
