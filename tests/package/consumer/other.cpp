// SPDX-License-Identifier: BSD-3-Clause
#include "attend.hpp"
#ifdef AFTER
#include AFTER
#endif

float attend_elsewhere() { return attend_once(); }
