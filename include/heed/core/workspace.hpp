// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/arena.hpp>

/// Memory that a thread keeps between calls.
///
/// Every step needs the same temporaries. Each thread that computes has one arena for them, its workspace: it grows to
/// what the largest call needed and is then used again, so that later steps allocate nothing.
namespace heed {

namespace detail {

inline arena& workspace_of_this_thread()
{
    static thread_local arena memory;
    return memory;
}

/// Something else that a thread keeps between calls. It is listed from its construction to the end of the thread.
class kept_by_thread {
public:
    kept_by_thread() : next_(first()) { first() = this; }
    kept_by_thread(const kept_by_thread&) = delete;
    kept_by_thread& operator=(const kept_by_thread&) = delete;

    static std::size_t total()
    {
        std::size_t bytes = 0;
        for (const kept_by_thread* each = first(); each != nullptr; each = each->next_) bytes += each->size();
        return bytes;
    }
    static void release_all()
    {
        for (kept_by_thread* each = first(); each != nullptr; each = each->next_) each->release();
    }

protected:
    ~kept_by_thread() = default;

private:
    virtual std::size_t size() const = 0;  // in bytes
    virtual void release() = 0;

    static kept_by_thread*& first()
    {
        static thread_local kept_by_thread* list = nullptr;
        return list;
    }

    kept_by_thread* next_;
};

}  // namespace detail

/// Temporaries of one call: taken from this thread's workspace, returned at the end of the scope.
class scratch {
public:
    scratch() : memory_(detail::workspace_of_this_thread()), before_(memory_.mark()) {}
    ~scratch() { memory_.release(before_); }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;

    /// Memory for so many elements until this scope ends, not set to anything.
    template <class T>
    T* take(std::size_t count)
    {
        return memory_.array_of<T>(count);
    }

private:
    arena& memory_;
    arena::position before_;
};

/// Bytes that this thread keeps between calls.
inline std::size_t workspace_size()
{
    return detail::workspace_of_this_thread().capacity() + detail::kept_by_thread::total();
}

/// Frees what this thread keeps between calls; the next call allocates anew. Not while this thread computes a step.
inline void release_workspace()
{
    detail::workspace_of_this_thread() = arena();
    detail::kept_by_thread::release_all();
}

}  // namespace heed
