// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <atomic>
#include <memory>
#include <new>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

/// A child of fork() has only the thread that called it. A mutex that another thread held stays locked there; joining a
/// thread or destroying a condition variable that one waits for never returns. So the child leaves such objects alone.
namespace heed::detail {

/// From now on, the child of each fork() calls this before fork() returns there. False if there is no memory for it.
/// Where there is no fork(), nothing happens.
inline bool in_each_child([[maybe_unused]] void (*call)())
{
#if defined(__unix__) || defined(__APPLE__)
    return ::pthread_atfork(nullptr, nullptr, call) == 0;
#else
    return true;
#endif
}

inline std::atomic<unsigned> forks{0};

/// How many calls of fork() lie between the program's first process and this one, since the first call of this
/// function, which throws std::bad_alloc if there is no memory to count: an object that has another number than when it
/// was made belongs to another process.
inline unsigned forks_so_far()
{
    static const bool counted = in_each_child([] { forks.fetch_add(1); });
    if (!counted) throw std::bad_alloc();
    return forks.load(std::memory_order_relaxed);
}

/// An object of the parent process that its child must not destroy. It can still be reached, so it is no leak.
struct left_object {
    std::shared_ptr<void> object;
    left_object* before;
};
inline std::atomic<left_object*> left_objects{nullptr};

inline void leave_undestroyed(std::shared_ptr<void> object)
{
    auto* const one = new left_object{std::move(object), left_objects.load()};
    while (!left_objects.compare_exchange_weak(one->before, one)) {}
}

}  // namespace heed::detail
