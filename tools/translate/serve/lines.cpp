// SPDX-License-Identifier: BSD-3-Clause
#include "lines.hpp"

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <istream>
#include <memory>
#include <mutex>
#include <new>
#include <ostream>
#include <string>
#include <thread>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed_kit/text/corpus.hpp>

#include "../../support/output.hpp"

namespace translation {

namespace {

/// The pending lines in order; the oldest is written first. At most `most` lines are submitted and unanswered, so that
/// the queue of the service, which has the same capacity, has room for each line.
class pending_lines {
public:
    struct line {
        std::size_t number;
        std::shared_ptr<service::batcher::request> asked;  // null: nothing to wait for
        std::string problem;
    };

    explicit pending_lines(std::size_t most) : most_(most) {}

    /// Call before submitting a line.
    void wait_for_room()
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return waiting_.size() + answering_ < most_ || broken_; });
    }
    void add(line next)
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(next));
        changed_.notify_all();
    }
    void end()
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        changed_.notify_all();
    }
    /// False after the last line. The previous line has been answered.
    bool take(line& next)
    {
        std::unique_lock lock(mutex_);
        answering_ = 0;
        changed_.notify_all();
        changed_.wait(lock, [&] { return !waiting_.empty() || ended_; });
        if (waiting_.empty()) return false;
        next = std::move(waiting_.front());
        waiting_.pop_front();
        answering_ = 1;
        return true;
    }
    /// Writing has failed, with this errno.
    void give_up(int reason)
    {
        const std::lock_guard lock(mutex_);
        broken_ = true;
        reason_ = reason;
        changed_.notify_all();
    }
    bool broken() const
    {
        const std::lock_guard lock(mutex_);
        return broken_;
    }
    int reason() const
    {
        const std::lock_guard lock(mutex_);
        return reason_;
    }

private:
    std::size_t most_, answering_ = 0;
    int reason_ = 0;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<line> waiting_;
    bool ended_ = false, broken_ = false;
};

/// The translation of the line; empty, with a message, on error.
std::string text_of(pending_lines::line& one, std::size_t& failures)
{
    try {
        if (!one.problem.empty()) throw heed::error(one.problem);
        if (!one.asked) return {};
        const auto done = one.asked->get();
        return done.front().best.empty() ? std::string() : done.front().best.front().text;
    } catch (const std::exception& why) {
        ++failures;
        try {
            std::fputs(
                ("translate: line " + std::to_string(one.number) + ": " + heed::text::printable(why.what()) + '\n')
                    .c_str(),
                stderr);
        } catch (const std::bad_alloc&) {
            std::fprintf(stderr, "translate: line %zu: out of memory\n", one.number);
        }
        return {};
    }
}

/// std::cin flushes std::cout before it waits, in the reading thread; concurrent output of another thread would be
/// written twice.
class untied {
public:
    explicit untied(std::istream& in) : in_(in), out_(in.tie(nullptr)) {}
    untied(const untied&) = delete;
    untied& operator=(const untied&) = delete;
    ~untied() { in_.tie(out_); }

private:
    std::istream& in_;
    std::ostream* out_;
};

}  // namespace

std::size_t serve_lines(service& with, std::istream& in, std::ostream& out, const std::function<bool()>& stopped)
{
    pending_lines waiting(with.queue());
    std::size_t failures = 0;
    const untied alone(in);
    std::thread writer([&] {
        for (pending_lines::line one; waiting.take(one);) {
            if (waiting.broken()) continue;
            const std::string text = text_of(one, failures) + '\n';
            errno = 0;
            if (!(out << text << std::flush)) waiting.give_up(errno);
        }
    });
    const auto finish = [&] {  // lines that were read are written in any case
        waiting.end();
        writer.join();
    };
    std::string text;
    try {
        std::size_t number = 1;
        const auto here = [&] { return "standard input:" + std::to_string(number); };
        for (; !stopped() && !waiting.broken() && heed::text::read_line(in, text, here); ++number) {
            if (text.ends_with('\r')) text.pop_back();
            pending_lines::line next{number, nullptr, {}};
            waiting.wait_for_room();
            try {
                next.asked = with.ask(text);
            } catch (const std::exception& why) {
                next.problem = why.what();
            }
            waiting.add(std::move(next));
        }
    } catch (...) {
        finish();
        throw;
    }
    finish();
    if (in.bad()) throw heed::error("cannot read standard input to its end");
    if (waiting.broken()) program::cannot_print(waiting.reason());
    return failures;
}

}  // namespace translation
