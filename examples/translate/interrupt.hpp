// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>

#include <signal.h>  // sigaction

namespace translation {

/// The signal that asked for an end: Ctrl-C, SIGTERM, or SIGHUP, which comes when a terminal is closed or a connection
/// breaks.
inline volatile std::sig_atomic_t interrupted = 0;

/// Records these signals in `interrupted` from now on. A second Ctrl-C or SIGTERM ends the program at once. A second
/// SIGHUP does not, because a shell and the system each send one. SIGHUP stays ignored if it was, as under nohup.
inline void stop_politely()
{
    struct sigaction hangup {};
    const bool ignored = ::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
        if (each == SIGHUP && ignored) continue;
        std::signal(each, [](int number) {
            interrupted = number;
            if (number != SIGHUP) std::signal(number, SIG_DFL);
        });
    }
}

}  // namespace translation
