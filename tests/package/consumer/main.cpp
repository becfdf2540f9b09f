// SPDX-License-Identifier: BSD-3-Clause
#ifdef BEFORE
#include BEFORE
#endif
#include "attend.hpp"

#include <cstdio>

float attend_elsewhere();

int main()
{
    const float here = attend_once();
    const float there = attend_elsewhere();
    std::printf("heed %s: %g here, %g there\n", HEED_VERSION_STRING, static_cast<double>(here),
                static_cast<double>(there));
    return here == there && here > 0 ? 0 : 1;
}
