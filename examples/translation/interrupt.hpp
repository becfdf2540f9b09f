// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>

namespace translation {

/// The signal that asked for an end: Ctrl-C or SIGTERM. The second one ends the program at once.
inline volatile std::sig_atomic_t interrupted = 0;

inline void stop_politely()
{
    for (const int each : {SIGINT, SIGTERM}) {
        std::signal(each, [](int number) {
            interrupted = number;
            std::signal(number, SIG_DFL);
        });
    }
}

}  // namespace translation
