// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace translation {

using clock = std::chrono::steady_clock;

inline double seconds_since(clock::time_point start)
{
    return std::chrono::duration<double>(clock::now() - start).count();
}

/// "4 s", "3:07" or "1:02:09".
inline std::string duration_text(double seconds)
{
    const auto whole = static_cast<long>(seconds + 0.5);
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

/// A line on standard error. A log that cannot be written is no reason to stop.
inline void say(const std::string& text) { std::fputs((text + '\n').c_str(), stderr); }

/// One line on standard error that is written over and over; nothing where standard error is no terminal, since a log
/// should hold only what lasts.
class live_line {
public:
    explicit live_line(bool wanted = true) : shown_(wanted && isatty(STDERR_FILENO) != 0) {}
    ~live_line() { clear(); }
    live_line(const live_line&) = delete;
    live_line& operator=(const live_line&) = delete;

    void show(const std::string& text)
    {
        if (!shown_ || (dirty_ && seconds_since(last_) < 0.1)) return;
        std::fputs(("\r\033[K" + text).c_str(), stderr);
        std::fflush(stderr);
        last_ = clock::now();
        dirty_ = true;
    }

    void clear()
    {
        if (dirty_) std::fputs("\r\033[K", stderr);
        dirty_ = false;
    }

private:
    bool shown_;
    bool dirty_ = false;
    clock::time_point last_{};
};

}  // namespace translation
