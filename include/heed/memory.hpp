// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Deprecated: this header is now <heed/attention/memory.hpp>. The old path works for one version.
#include <heed/attention/answers.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/moment.hpp>
#include <heed/attention/weigh.hpp>
