// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Deprecated: this header is now <heed/attention/concepts.hpp>, and <heed/attention/check_policy.hpp> for the checks.
// The old path works for one version.
#include <heed/attention/check_policy.hpp>
#include <heed/attention/concepts.hpp>
