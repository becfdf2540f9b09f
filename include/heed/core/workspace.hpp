// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/arena.hpp>

/// What a thread keeps between calls.
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

}  // namespace detail

/// Temporaries of one call: taken from this thread's workspace, given back at the end of the scope.
class scratch {
public:
    scratch() : memory_(detail::workspace_of_this_thread()), before_(memory_.mark()) {}
    ~scratch() { memory_.release(before_); }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;

    template <class T>
    T* take(std::size_t count)
    {
        return memory_.array_of<T>(count);
    }

private:
    arena& memory_;
    arena::position before_;
};

/// Bytes that this thread's workspace holds.
inline std::size_t workspace_size() { return detail::workspace_of_this_thread().capacity(); }

/// Lets go of this thread's workspace; the next call allocates anew. Not while a step is being computed on this thread.
inline void release_workspace() { detail::workspace_of_this_thread() = arena(); }

}  // namespace heed
