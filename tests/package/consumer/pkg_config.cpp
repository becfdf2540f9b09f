// SPDX-License-Identifier: BSD-3-Clause
// Built from pkg-config's flags alone: finds heed, xtensor and xtensor-blas, links a BLAS with the C interface.
#include "multiply.hpp"

int main() { return multiply_once() == 5.0F && HEED_VERSION > 0 ? 0 : 1; }
