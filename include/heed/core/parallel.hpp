// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/atomic.hpp>
#include <heed/core/cxx20.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/function_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <pthread.h>  // not <thread>, <mutex> and <condition_variable>: they take g++ a tenth of the time of xtensor
#include <sched.h>
#include <unistd.h>

/// heed's thread pool.
///
/// Work is cut into one contiguous shard per thread, always the same way for a given thread count, so that two runs
/// agree bit for bit. With one thread no pool exists. A call inside a shard, or from a second user thread while the
/// pool is busy, runs on the calling thread.
///
/// The pool ends with the program's static objects; destructors that run later compute on their own thread. A child of
/// fork() has one thread until it calls set_threads; fork() must not be called inside a shard.
///
/// Files compiled for different targets share one setting and one pool.
namespace heed::for_all_targets {

/// Threads that share work. Abstract, so that only programs that call set_threads compile the code that starts and ends
/// threads.
class thread_pool {
public:
    virtual ~thread_pool() = default;
    thread_pool& operator=(thread_pool&&) = delete;

    /// Runs call(context, shard) for every shard; shard 0 on the calling thread. False if the pool is busy or closed.
    virtual bool run(void (*call)(void*, std::size_t), void* context) = 0;

    /// Ends the threads: from now on run() returns false. Has no effect if the pool is busy, because another thread
    /// computes while the program ends, or a shard has called std::exit.
    virtual void close() = 0;

    thread_pool* left_before = nullptr;  // see parallel_settings

protected:
    thread_pool() = default;
};

/// Without a destructor: static objects that end after the pool may still use it.
struct parallel_settings {
    std::size_t threads = 1;
    thread_pool* pool = nullptr;
    thread_pool* left = nullptr;  // the pools of this process's ancestors, so that they stay reachable
    bool over = false;            // the program's static objects are being destroyed
};
/// The settings of the program.
inline constinit parallel_settings parallel;

/// Does this thread compute a shard?
inline thread_local bool inside_shard = false;

/// The matrix products that replace the BLAS on this thread, of the target in which batch_invariant was made
/// (gemm/blas.hpp). Null: the BLAS computes them.
inline thread_local const void* own_products_here = nullptr;

}  // namespace heed::for_all_targets

namespace heed::inline HEED_TARGET {

namespace detail {

// A child of fork() has only the thread that called it. A mutex that another thread held stays locked; joining a
// thread, or destroying a condition variable with a waiting thread, never returns. So the child leaves such objects
// alone.

/// From now on, the child of each fork() calls this first. False if memory for the registration is exhausted.
inline bool in_each_child(void (*call)()) { return ::pthread_atfork(nullptr, nullptr, call) == 0; }

using for_all_targets::atomic;
using for_all_targets::own_products_here;
using for_all_targets::thread_pool;

/// Holds a mutex. `wait`: or only tries to lock it.
class mutex_lock {
public:
    explicit mutex_lock(::pthread_mutex_t& of, bool wait = true)
        : of_(of), owns_((wait ? ::pthread_mutex_lock(&of) : ::pthread_mutex_trylock(&of)) == 0)
    {}
    ~mutex_lock()
    {
        if (owns_) ::pthread_mutex_unlock(&of_);
    }
    mutex_lock& operator=(mutex_lock&&) = delete;
    explicit operator bool() const { return owns_; }

private:
    ::pthread_mutex_t& of_;
    bool owns_;
};

template <class Thread>
class pool_of final : public thread_pool {
public:
    explicit pool_of(std::size_t threads)
    {
        shards_.resize(threads);
        workers_.reserve(threads);
        for (std::size_t shard = 1; shard < threads; ++shard) {
            shards_[shard] = {this, shard, nullptr};
            Thread worker;
            const int problem = ::pthread_create(&worker, nullptr, begin, &shards_[shard]);
            if (problem == 0) {
                workers_.push_back(worker);
                continue;
            }
            const std::size_t started = workers_.size() + 1;
            end();
            throw_error({"set_threads: cannot start ", threads, " threads, only ", started, ": ",
                         std::generic_category().message(problem)});
        }
    }

    ~pool_of() override
    {
        end();
        ::pthread_cond_destroy(&wake_);
    }

    bool run(void (*call)(void*, std::size_t), void* context) override
    {
        const mutex_lock lock(one_user_, false);
        if (!lock || closed_) return false;
        call_ = call;
        context_ = context;
        pending_.store(workers_.size(), __ATOMIC_RELAXED);
        announce();
        invoke(0);
        for (int spin = 0; pending_.load(__ATOMIC_ACQUIRE) != 0; ++spin) {
            if (spin < spins) {
                pause();
            } else {
                ::sched_yield();
            }
        }
        std::exception_ptr first;
        for (shard_of_thread& each : shards_) {
            if (!first) first = each.error;
            each.error = nullptr;
        }
        if (first) std::rethrow_exception(first);
        return true;
    }

    void close() override
    {
        const mutex_lock lock(one_user_, false);
        if (!lock) return;
        closed_ = true;
        end();
    }

private:
    // A pause is 40 to 140 cycles: a worker polls for some 50 us before it sleeps.
    static constexpr int spins = 2000;

    static void pause()
    {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }

    void announce()
    {
        {
            const mutex_lock lock(sleep_);
            generation_.fetch_add(1, __ATOMIC_RELEASE);
        }
        ::pthread_cond_broadcast(&wake_);
    }

    void end()
    {
        stopping_.store(true);
        announce();
        for (const Thread& worker : workers_) ::pthread_join(worker, nullptr);
        workers_.clear();
    }

    void invoke(std::size_t shard)
    {
        try {
            call_(context_, shard);
        } catch (...) {
            shards_[shard].error = std::current_exception();
        }
    }

    void work(std::size_t shard)
    {
        std::size_t seen = 0;
        for (;;) {
            for (int spin = 0; spin < spins && generation_.load(__ATOMIC_ACQUIRE) == seen; ++spin) pause();
            if (generation_.load(__ATOMIC_ACQUIRE) == seen) {
                const mutex_lock lock(sleep_);
                while (generation_.load(__ATOMIC_ACQUIRE) == seen) ::pthread_cond_wait(&wake_, &sleep_);
            }
            seen = generation_.load(__ATOMIC_ACQUIRE);
            if (stopping_.load()) return;
            invoke(shard);
            pending_.fetch_sub(1, __ATOMIC_RELEASE);
        }
    }

    struct shard_of_thread {
        pool_of* pool;
        std::size_t number;
        std::exception_ptr error;
    };
    static void* begin(void* of)
    {
        const auto& here = *static_cast<const shard_of_thread*>(of);
        here.pool->work(here.number);
        return nullptr;
    }

    std::vector<shard_of_thread> shards_;
    std::vector<Thread> workers_;
    ::pthread_mutex_t one_user_ = PTHREAD_MUTEX_INITIALIZER, sleep_ = PTHREAD_MUTEX_INITIALIZER;
    ::pthread_cond_t wake_ = PTHREAD_COND_INITIALIZER;
    atomic<std::size_t> generation_{0}, pending_{0};
    atomic<bool> stopping_{false};
    bool closed_ = false;  // only the current user changes and reads it
    void (*call_)(void*, std::size_t) = nullptr;
    void* context_ = nullptr;
};

using for_all_targets::parallel;

/// In a child of fork(): the parent's pool has no threads here, and is never destroyed.
inline void leave_pool_of_parent()
{
    if (parallel.pool != nullptr) parallel.pool->left_before = std::exchange(parallel.left, parallel.pool);
    parallel.pool = nullptr;
    parallel.threads = 1;
}

/// Ends the pool's threads with the program, or when the library is unloaded; the pool itself stays. Made before the
/// first pool.
struct end_of_pool {
    end_of_pool()
    {
        if (!in_each_child(leave_pool_of_parent)) throw std::bad_alloc();
    }
    end_of_pool& operator=(end_of_pool&&) = delete;
    ~end_of_pool()
    {
        parallel.over = true;
        if (parallel.pool != nullptr) parallel.pool->close();
    }
};

using for_all_targets::inside_shard;

}  // namespace detail

/// The number of threads that heed uses: 1 unless set_threads was called.
inline std::size_t threads() { return detail::parallel.threads; }

/// Sets the number of threads (0: all threads of the machine). Must not be called while another thread is inside heed.
/// Throws heed::error if the system has no more threads, or std::bad_alloc, and changes nothing. No effect at the
/// program's end.
// A template, so that only programs that call it compile the pool.
template <class Thread = ::pthread_t>
void set_threads(std::size_t count)
{
    for_all_targets::parallel_settings& settings = detail::parallel;
    if (count == 0) count = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
    if (count == settings.threads || settings.over) return;
    static const detail::end_of_pool end;
    detail::thread_pool* const pool = count > 1 ? new detail::pool_of<Thread>(count) : nullptr;
    delete std::exchange(settings.pool, pool);
    settings.threads = count;
}

namespace detail {

/// The work of parallel_for on several threads, compiled once for all of its bodies.
struct shared_work {
    function_ref<void, std::size_t, std::size_t, std::size_t> body;
    std::size_t count, shards, align;
    const void* products;  // of the calling thread

    static void run(void* self, std::size_t shard)
    {
        const shared_work& that = *static_cast<const shared_work*>(self);
        if (shard >= that.shards) return;
        const std::size_t units = (that.count + that.align - 1) / that.align;
        const std::size_t begin = units * shard / that.shards * that.align;
        std::size_t end = units * (shard + 1) / that.shards * that.align;
        if (end > that.count) end = that.count;
        if (begin >= end) return;
        struct inside {
            explicit inside(const void* products) : before(std::exchange(own_products_here, products))
            {
                inside_shard = true;
            }
            ~inside()
            {
                inside_shard = false;
                own_products_here = before;
            }
            inside& operator=(inside&&) = delete;

            const void* before;
        } const scope(that.products);
        that.body(begin, end, shard);
    }
};

[[gnu::noinline]] inline void share_work(const function_ref<void, std::size_t, std::size_t, std::size_t>& body,
                                         std::size_t count, std::size_t shards, std::size_t align)
{
    shared_work work{body, count, shards, align, own_products_here};
    if (parallel.pool->run(&shared_work::run, &work)) return;
    for (std::size_t shard = 0; shard < shards; ++shard) shared_work::run(&work, shard);
}

/// The number of shards that parallel_for makes of [0, count): at most threads(), and at most count / grain, rounded
/// up; 1 within a shard. Not inlined: a program has hundreds of calls of parallel_for.
[[gnu::noinline]] inline std::size_t shard_count(std::size_t count, std::size_t grain)
{
    if (count == 0 || inside_shard) return 1;
    const std::size_t most = grain == 0 ? count : (count + grain - 1) / grain;
    return threads() < most ? threads() : most;
}

}  // namespace detail

/// Calls body(begin, end, shard) for contiguous shards of [0, count) that begin at multiples of `align`.
template <class Body>
void parallel_for(std::size_t count, std::size_t grain, Body&& body, std::size_t align = 1)
{
    if (count == 0) return;
    const std::size_t shards = detail::shard_count(count, grain);
    if (shards <= 1) return body(std::size_t{0}, count, std::size_t{0});
    detail::share_work(body, count, shards, align);
}

}  // namespace heed::inline HEED_TARGET
