// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Lets one allocation, or one call of the system, fail. It replaces operator new, so exactly one source file of a
// program includes it. A call of the system fails where the program is linked with --wrap (see tests/CMakeLists.txt),
// and its __wrap_ function asks `fails`.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include <doctest/doctest.h>

#include <heed/core/errors.hpp>

namespace support {

/// The allocation of the whole program that fails, counted from 1; 0: none. It fails once.
inline std::atomic<long> failing_allocation{0};
inline std::atomic<long> living_allocations{0};

/// How many bytes all allocations together have asked for.
inline std::atomic<std::size_t> asked_for{0};

/// The call that fails: its name, and how many come before it.
inline std::atomic<const char*> failing_call{""};
inline std::atomic<long> calls_before{0};
inline std::atomic<int> fails_with{0};  // errno; 0: half of what should be written is
inline std::atomic<bool> has_failed{false};

/// Nothing of this thread fails, or is counted among what comes before.
inline thread_local bool spared = false;

inline void* allocated(std::size_t bytes, std::size_t alignment)
{
    asked_for.fetch_add(bytes, std::memory_order_relaxed);
    if (failing_allocation.load(std::memory_order_relaxed) > 0 && !spared && failing_allocation.fetch_sub(1) == 1) {
        has_failed = true;
        throw std::bad_alloc();
    }
    void* memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    living_allocations.fetch_add(1, std::memory_order_relaxed);
    return memory;
}
// Not inlined: g++ would see free() of memory from operator new, and not that both are ours.
[[gnu::noinline]] inline void give_back(void* memory)
{
    if (memory != nullptr) living_allocations.fetch_sub(1, std::memory_order_relaxed);
    std::free(memory);
}

/// Whether this call is the one that fails.
inline bool fails(const char* name)
{
    if (spared || std::strcmp(name, failing_call) != 0 || calls_before-- != 0) return false;
    has_failed = true;
    errno = fails_with;
    return true;
}

/// Calls attempt(), and fails its first allocation, then its second, until none is left: the number of allocations.
/// `look` checks what is left after each failure.
long fail_each_allocation(const auto& attempt, const auto& look)
{
    for (long n = 1;; ++n) {
        failing_allocation = n;
        try {
            attempt();
        } catch (...) {
            failing_allocation = 0;
            look();
            continue;
        }
        const bool passed_over = failing_allocation.exchange(0) > 0;
        look();
        if (passed_over) return n - 1;
    }
}

/// Runs it; only these are thrown.
void expects(const auto& action)
{
    try {
        action();
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const heed::error&) {
        throw;
    } catch (...) {
        failing_allocation = 0;
        FAIL("something else was thrown");
    }
}

}  // namespace support

void* operator new(std::size_t bytes) { return support::allocated(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes) { return support::allocated(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t to)
{
    return support::allocated(bytes, static_cast<std::size_t>(to));
}
void* operator new[](std::size_t bytes, std::align_val_t to)
{
    return support::allocated(bytes, static_cast<std::size_t>(to));
}
// stable_sort asks for memory in this way. Without this, a sanitizer's own would serve it.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    try {
        return operator new(bytes);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { support::give_back(memory); }
void operator delete(void* memory) noexcept { support::give_back(memory); }
void operator delete[](void* memory) noexcept { support::give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { support::give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { support::give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { support::give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { support::give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { support::give_back(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { support::give_back(memory); }
