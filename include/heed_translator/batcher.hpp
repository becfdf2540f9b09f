// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <heed/core/errors.hpp>
#include <heed/core/forks.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

/// Combines the requests of many clients into batches.
namespace heed::translator {

/// A request was rejected because the queue is full; `retry_after` estimates when the queue will be empty.
struct queue_full : error {
    explicit queue_full(const std::string& what, double seconds) : error(what), retry_after(seconds) {}
    double retry_after;  ///< in seconds, estimated from the duration of recent batches
};

/// A request was rejected because the batcher is stopping.
struct stopping : error {
    using error::error;
};

/// A request was not answered by its deadline.
struct too_late : error {
    using error::error;
};

/// `cancel` was called for this request.
struct canceled : error {
    using error::error;
};

/// Limits of a `batcher`.
struct batcher_limits {
    std::size_t batch = 64;    ///< maximum number of lines per batch
    std::size_t queue = 1024;  ///< maximum number of waiting lines; lines in progress do not count
    std::size_t workers = 1;   ///< concurrent batches; more than 1 only if the work may be called from several threads
};

/// Statistics of a `batcher`.
struct batcher_counters {
    static constexpr std::size_t sizes = 11;  ///< upper bounds of batch sizes: 1, 2, 4, … 512, and more

    std::size_t waiting = 0, working = 0;                                         ///< lines, currently
    std::uint64_t requests = 0, refused = 0, late = 0, canceled = 0, failed = 0;  ///< requests
    std::uint64_t lines = 0, batches = 0, retried = 0;  ///< completed batches; batches that were split
    double seconds = 0;                                 ///< spent on work
    std::array<std::uint64_t, sizes> batch_sizes = {};  ///< number of batches by number of lines
};

/// A queue of lines, and threads that process it in batches. A request consists of lines and options.
///
/// - The next batch starts as soon as a worker is free, without waiting for a batch to fill. Requests that arrive
///   meanwhile form the following batches.
/// - A batch contains the line that has waited longest, and the lines with equal options that are most similar in
///   length. So a line waits for at most as many batches as there were lines before it.
/// - A request that does not fit the queue is rejected as a whole (`queue_full`), as are all requests after `stop`.
/// - If the work throws, each line of that batch is retried separately. Only requests with lines that throw fail.
/// - If memory runs out, the affected request gets std::bad_alloc, from `submit` or `get`; the others continue.
/// - A request's lines leave the queue when it is canceled, or when its deadline passes. Work that checks whether
///   a line is still wanted can also end then.
/// - A child of fork() has no threads of the batcher: there, `submit` and `get` throw `stopping`, and the destructor
/// returns.
///
///     translator::batcher<how, std::string> at(translate, {.batch = 32, .queue = 256});
///     const auto asked = at.submit({{"a man sleeps .", 4}}, how{.beam = 12}, std::chrono::seconds(10));
///     std::cout << asked->get().front();
///
/// `Options` must be comparable by ==. All functions may be called from any thread.
template <class Options, class Result>
class batcher {
    struct shared;
    enum class outcome { done, late, canceled, failed };

public:
    using clock = std::chrono::steady_clock;

    /// The results of these lines, in order.
    using work = std::function<std::vector<Result>(const std::vector<std::string>& lines, const Options& how)>;

    /// Whether the line with this number is still wanted: its request has not been canceled, and its deadline has not
    /// passed. The work may call it from any thread.
    using still_wanted = std::function<bool(std::size_t line)>;

    /// For work that takes long: it may return Result() for lines that are no longer wanted.
    using long_work = std::function<std::vector<Result>(const std::vector<std::string>& lines, const Options& how,
                                                        const still_wanted& wanted)>;

    /// A line and its length; lines of similar length are batched.
    struct line {
        std::string text;
        std::size_t length = 0;
    };

    /// A submitted request, returned by `submit`. It may outlive the batcher.
    class request {
    public:
        /// Waits for the results and moves them out: one per line. Throws too_late at the deadline,
        /// `heed::translator::canceled`, or the exception of the work for a line.
        std::vector<Result> get()
        {
            if (shared_->is_of_parent()) {  // the threads may hold the mutex forever
                if (!over_) throw stopping(of_parent);
                if (error_) std::rethrow_exception(error_);
                return std::move(results_);
            }
            std::unique_lock lock(shared_->mutex);
            if (!changed_.wait_until(lock, deadline_, [&] { return over_.load(); }))
                shared_->end(*this, outcome::late, shared_->late);
            if (error_) std::rethrow_exception(error_);
            return std::move(results_);
        }

        /// Cancels the request: its results are no longer wanted.
        void cancel()
        {
            if (shared_->is_of_parent()) return;
            const std::lock_guard lock(shared_->mutex);
            shared_->end(*this, outcome::canceled, shared_->canceled);
        }

    private:
        friend class batcher;

        std::shared_ptr<batcher::shared> shared_;
        Options how_;
        clock::time_point deadline_;
        std::vector<line> lines_;
        std::vector<Result> results_;
        std::size_t left_ = 0;
        std::atomic<bool> over_{false};  // protected by the mutex
        std::exception_ptr error_;
        std::condition_variable changed_;
    };

    /// Throws heed::error if a limit is 0, or if the workers cannot be started.
    explicit batcher(work translate, batcher_limits limits = {})
        : batcher(
              long_work([translate = std::move(translate)](const std::vector<std::string>& lines, const Options& how,
                                                           const still_wanted&) { return translate(lines, how); }),
              limits)
    {}
    explicit batcher(long_work translate, batcher_limits limits = {})
        : shared_(std::make_shared<shared>()), work_(std::move(translate)), limits_(limits)
    {
        if (limits.batch == 0 || limits.queue == 0 || limits.workers == 0)
            throw error("batcher: a batch of " + counted(limits.batch, "line") + ", a queue of " +
                        std::to_string(limits.queue) + " and " + counted(limits.workers, "worker") +
                        "; each must be at least 1");
        workers_.reserve(limits.workers);
        try {
            for (std::size_t i = 0; i < limits.workers; ++i) workers_.emplace_back([this] { run(); });
        } catch (const std::system_error& problem) {
            stop();
            throw error("batcher: " + counted(limits.workers, "worker") +
                        " cannot be started: " + problem.code().message());
        } catch (...) {
            stop();
            throw;
        }
    }
    batcher(const batcher&) = delete;
    batcher& operator=(const batcher&) = delete;
    ~batcher() { stop(); }

    /// Queues these lines. Throws queue_full or stopping, and heed::error if the number of lines exceeds the capacity
    /// of the queue.
    std::shared_ptr<request> submit(std::vector<line> lines, Options how, clock::duration timeout)
    {
        if (shared_->is_of_parent()) throw stopping(of_parent);
        auto asked = std::make_shared<request>();
        asked->shared_ = shared_;
        asked->how_ = std::move(how);
        const clock::time_point now = clock::now();  // now + timeout may overflow the clock
        asked->deadline_ = timeout < clock::time_point::max() - now ? now + timeout : clock::time_point::max();
        asked->lines_ = std::move(lines);
        asked->left_ = asked->lines_.size();
        asked->over_ = asked->lines_.empty();
        asked->results_.resize(asked->left_);
        {
            const std::lock_guard lock(shared_->mutex);
            batcher_counters& count = shared_->counters;
            if (asked->left_ > limits_.queue)
                throw error(counted(asked->left_, "line") + " in one request; at most " +
                            std::to_string(limits_.queue) + " are accepted");
            if (shared_->stopping) throw stopping("the service is stopping; use another one");
            if (shared_->queue.size() + asked->left_ > limits_.queue) {
                ++count.refused;
                throw queue_full(std::to_string(shared_->queue.size()) + " lines are waiting; at most " +
                                     std::to_string(limits_.queue) + " are allowed",
                                 static_cast<double>(shared_->queue.size()) * shared_->seconds_per_line);
            }
            const std::size_t before = shared_->queue.size();
            try {
                for (std::size_t i = 0; i < asked->left_; ++i) shared_->queue.push_back({asked, i});
            } catch (...) {
                while (shared_->queue.size() > before) shared_->queue.pop_back();
                throw;
            }
            ++count.requests;
        }
        shared_->more.notify_all();
        return asked;
    }

    /// Rejects new requests, finishes the accepted ones, and ends the workers.
    void stop()
    {
        if (shared_->is_of_parent()) {
            detail::leave_undestroyed(shared_);
            detail::leave_undestroyed(std::make_shared<std::vector<std::thread>>(std::move(workers_)));
            return;
        }
        {
            const std::lock_guard lock(shared_->mutex);
            shared_->stopping = true;
        }
        shared_->more.notify_all();
        const std::lock_guard once(joining_);
        for (std::thread& each : workers_) {
            if (each.joinable()) each.join();
        }
    }

    /// Statistics so far, and the current queue.
    batcher_counters counters() const
    {
        std::unique_lock lock(shared_->mutex, std::defer_lock);
        if (!shared_->is_of_parent()) lock.lock();
        batcher_counters now = shared_->counters;
        now.waiting = shared_->queue.size();
        return now;
    }

    /// The limits passed to the constructor.
    const batcher_limits& limits() const { return limits_; }

private:
    struct waiting_line {
        std::shared_ptr<request> of;
        std::size_t index;

        std::size_t length() const { return of->lines_[index].length; }
    };

    static constexpr const char* of_parent = "the batcher belongs to the parent process of this fork, and its "
                                             "threads do not run here; construct another batcher";

    struct shared {
        bool is_of_parent() const { return detail::forks_so_far() != process; }

        const unsigned process = detail::forks_so_far();
        std::mutex mutex;
        std::condition_variable more;
        std::deque<waiting_line> queue;  // in order of arrival
        batcher_counters counters;
        double seconds_per_line = 0;  // exponential moving average
        bool stopping = false;
        // Allocated in advance, since memory may run out later.
        const std::exception_ptr late = std::make_exception_ptr(
                                     too_late("not done in time; send shorter texts, or retry later")),
                                 canceled = std::make_exception_ptr(translator::canceled("the request was canceled"));

        // Requires the lock.
        void end(request& asked, outcome how, std::exception_ptr why)
        {
            if (asked.over_) return;
            asked.over_ = true;
            asked.error_ = std::move(why);
            if (how != outcome::done) {
                counters.late += how == outcome::late;
                counters.canceled += how == outcome::canceled;
                counters.failed += how == outcome::failed;
                asked.results_.clear();
                std::erase_if(queue, [&](const waiting_line& each) { return each.of.get() == &asked; });
            }
            asked.changed_.notify_all();
        }

        void give(const waiting_line& to, Result&& result)
        {
            ++counters.lines;
            if (to.of->over_) return;
            to.of->results_[to.index] = std::move(result);
            if (--to.of->left_ == 0) end(*to.of, outcome::done, nullptr);
        }
    };

    // Requires the lock and a queue that is not empty. Takes the next batch out of the queue. If it throws, the queue
    // is unchanged.
    std::vector<waiting_line> next_batch()
    {
        std::deque<waiting_line>& queue = shared_->queue;
        const Options how = queue.front().of->how_;
        const std::size_t wanted = queue.front().length();
        std::vector<std::size_t> similar;  // positions in the queue
        for (std::size_t i = 0; i < queue.size(); ++i) {
            if (queue[i].of->how_ == how) similar.push_back(i);
        }
        const auto distance = [&](std::size_t i) {
            return std::max(queue[i].length(), wanted) - std::min(queue[i].length(), wanted);
        };
        if (similar.size() > limits_.batch) {  // the first line stays first: its distance is 0, and it is the oldest
            std::stable_sort(similar.begin(), similar.end(),
                             [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
            similar.resize(limits_.batch);
            std::sort(similar.begin(), similar.end());
        }
        std::vector<waiting_line> together;
        together.reserve(similar.size());
        for (const std::size_t i : similar) together.push_back(std::move(queue[i]));
        std::erase_if(queue, [](const waiting_line& each) { return each.of == nullptr; });
        return together;
    }

    void run()
    {
        std::unique_lock lock(shared_->mutex);
        for (;;) {
            shared_->more.wait(lock, [&] { return shared_->stopping || !shared_->queue.empty(); });
            if (shared_->queue.empty()) return;
            const clock::time_point start = clock::now();
            end_late(start);
            if (shared_->queue.empty()) continue;
            std::vector<waiting_line> some;
            waiting_line one{};
            try {
                some = next_batch();
            } catch (...) {  // no memory for a batch: the oldest line alone requires none
                one = std::move(shared_->queue.front());
                shared_->queue.pop_front();
            }
            const std::span<const waiting_line> together = some.empty() ? std::span(&one, 1) : std::span(some);
            batcher_counters& count = shared_->counters;
            count.working += together.size();
            ++count.batches;
            std::size_t size = 0;
            while (size + 1 < batcher_counters::sizes && (std::size_t{1} << size) < together.size()) ++size;
            ++count.batch_sizes[size];
            lock.unlock();
            answer(together);
            lock.lock();
            const double took = std::chrono::duration<double>(clock::now() - start).count();
            const double each = took / static_cast<double>(together.size());
            shared_->seconds_per_line = count.batches == 1 ? each : 0.75 * shared_->seconds_per_line + 0.25 * each;
            count.seconds += took;
            count.working -= together.size();
        }
    }

    // Requires the lock. Ends the requests whose deadline has passed.
    void end_late(clock::time_point now)
    {
        for (;;) {
            const auto found = std::find_if(shared_->queue.begin(), shared_->queue.end(),
                                            [&](const waiting_line& each) { return each.of->deadline_ <= now; });
            if (found == shared_->queue.end()) return;
            const std::shared_ptr<request> late = found->of;  // removes it from the queue
            shared_->end(*late, outcome::late, shared_->late);
        }
    }

    bool is_wanted(request& asked) const
    {
        if (asked.over_.load(std::memory_order_relaxed)) return false;
        if (clock::now() < asked.deadline_) return true;
        const std::lock_guard lock(shared_->mutex);
        shared_->end(asked, outcome::late, shared_->late);
        return false;
    }

    // Calls the work for these lines.
    std::vector<Result> call(std::span<const waiting_line> some) const
    {
        std::vector<std::string> lines;
        for (const waiting_line& each : some) lines.push_back(each.of->lines_[each.index].text);
        std::vector<Result> results =
            work_(lines, some.front().of->how_, [&](std::size_t i) { return is_wanted(*some[i].of); });
        if (results.size() != lines.size())
            throw error("batcher: the work returned " + counted(results.size(), "result") + " for " +
                        counted(lines.size(), "line"));
        return results;
    }

    void answer(std::span<const waiting_line> together)
    {
        try {
            std::vector<Result> results = call(together);
            const std::lock_guard lock(shared_->mutex);
            for (std::size_t i = 0; i < together.size(); ++i) shared_->give(together[i], std::move(results[i]));
            return;
        } catch (...) {
            if (together.size() == 1) return fail(together.front(), std::current_exception());
        }
        {
            const std::lock_guard lock(shared_->mutex);
            ++shared_->counters.retried;
        }
        for (const waiting_line& each : together) {
            {
                const std::lock_guard lock(shared_->mutex);
                if (each.of->over_) continue;
            }
            try {
                std::vector<Result> result = call(std::span(&each, 1));
                const std::lock_guard lock(shared_->mutex);
                shared_->give(each, std::move(result.front()));
            } catch (...) {
                fail(each, std::current_exception());
            }
        }
    }

    void fail(const waiting_line& one, std::exception_ptr why)
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->end(*one.of, outcome::failed, std::move(why));
    }

    std::shared_ptr<shared> shared_;
    long_work work_;
    batcher_limits limits_;
    std::mutex joining_;
    std::vector<std::thread> workers_;
};

}  // namespace heed::translator
