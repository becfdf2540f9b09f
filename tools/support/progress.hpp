// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

/// Progress of programs on a terminal.
namespace program {

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

/// One line on standard error that is repeatedly overwritten. Prints nothing if standard error is not a terminal, since
/// logs should not contain transient output.
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

/// The progress of a long task: "1280/20000 sentences, 350/s, left 53 s".
class progress {
public:
    /// `total` 0: unknown. `of`: the unit.
    explicit progress(std::size_t total, bool wanted = true, std::string of = "sentences")
        : total_(total), of_(std::move(of)), line_(wanted)
    {}

    void add(std::size_t count)
    {
        done_ += count;
        const double seconds = seconds_since(start_), speed = static_cast<double>(done_) / seconds;
        const double left = static_cast<double>(total_) - static_cast<double>(done_);
        line_.show(total_ == 0 ? fmt::format("{} {}, {:.0f}/s", done_, of_, speed)
                               : fmt::format("{}/{} {}, {:.0f}/s, left {}", done_, total_, of_, speed,
                                             duration_text(left / speed)));
    }
    /// Reports the number of completed items.
    void reach(std::size_t done, std::size_t total)
    {
        total_ = total;
        add(done - done_);
    }
    void clear() { line_.clear(); }

private:
    std::size_t total_, done_ = 0;
    std::string of_;
    live_line line_;
    clock::time_point start_ = clock::now();
};

}  // namespace program
