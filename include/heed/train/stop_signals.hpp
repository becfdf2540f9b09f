// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <csignal>
#include <cstddef>

#include <signal.h>  // sigaction

#include <heed/core/cxx20.hpp>

namespace heed::inline HEED_TARGET::train {

namespace detail {

/// The signal that requested the stop; a handler may not write anything else.
inline volatile std::sig_atomic_t stop_signal = 0;

inline void note_stop_signal(int number)
{
    stop_signal = number;
    if (number != SIGHUP) std::signal(number, SIG_DFL);
}

}  // namespace detail

/// Makes a training loop stop at its next convenient point: from now on, Ctrl-C (SIGINT), SIGTERM (`kill`, a shutdown)
/// and SIGHUP (a closed terminal, a broken connection) are only recorded.
///
///     const train::stop_signals stop;
///     for (; at.epoch < epochs && !stop; ++at.epoch) …
///     train::save_checkpoint(path, model, optimizer, at);
///     return stop.status();
///
/// A second Ctrl-C or SIGTERM ends the program at once; a second SIGHUP does not, because a shell and the system each
/// send one. SIGHUP stays ignored if it already was, as under nohup. The destructor restores all handlers. POSIX; one
/// object at a time.
class stop_signals {
public:
    stop_signals()
    {
        detail::stop_signal = 0;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (::sigaction(numbers[i], nullptr, &before_[i]) != 0) continue;
            if (numbers[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) continue;
            std::signal(numbers[i], detail::note_stop_signal);
        }
    }
    stop_signals(const stop_signals&) = delete;
    stop_signals& operator=(const stop_signals&) = delete;
    ~stop_signals()
    {
        for (std::size_t i = 0; i < numbers.size(); ++i) ::sigaction(numbers[i], &before_[i], nullptr);
    }

    explicit operator bool() const { return number() != 0; }
    static int number() { return detail::stop_signal; }  // the signal, or 0

    /// The exit status that a shell expects: 0, or 128 and the signal's number.
    static int status() { return number() == 0 ? 0 : 128 + number(); }

private:
    static constexpr std::array<int, 3> numbers{SIGINT, SIGTERM, SIGHUP};
    std::array<struct sigaction, 3> before_{};
};

}  // namespace heed::inline HEED_TARGET::train
