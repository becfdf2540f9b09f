// SPDX-License-Identifier: BSD-3-Clause
#include "multiply.hpp"
#ifdef AFTER
#include AFTER
#endif

float multiply_elsewhere() { return multiply_once(); }
