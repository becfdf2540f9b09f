// SPDX-License-Identifier: BSD-3-Clause
#ifdef BEFORE
#include BEFORE
#endif
#ifdef ALL_OF_HEED
#include "attend.hpp"
#else
#include "multiply.hpp"
#endif

#include <cstdio>

float multiply_elsewhere();

int main()
{
#ifdef ALL_OF_HEED
    const float here = attend_once();
#else
    const float here = multiply_once();
#endif
    const float there = multiply_elsewhere();
    std::printf("heed %s: %g here, %g there\n", HEED_VERSION_STRING, static_cast<double>(here),
                static_cast<double>(there));
    return here > 0 && there == 5.0F ? 0 : 1;
}
