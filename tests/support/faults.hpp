// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Makes one allocation or one system call fail. It replaces operator new, so exactly one source file of a program
// includes it. A system call can fail if the program is linked with --wrap (see tests/CMakeLists.txt); its __wrap_
// function calls `fails`.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include <doctest/doctest.h>

#include <heed/core/errors.hpp>

namespace support {

/// The number of the failing allocation in the whole program, from 1; 0: none. It fails once.
inline std::atomic<long> failing_allocation{0};
inline std::atomic<long> living_allocations{0};

/// The total number of allocated bytes.
inline std::atomic<std::size_t> asked_for{0};

/// The failing call: its name, and the number of calls before it.
inline std::atomic<const char*> failing_call{""};
inline std::atomic<long> calls_before{0};
inline std::atomic<int> fails_with{0};  // errno; 0: only half of the bytes are written
inline std::atomic<bool> has_failed{false};

/// In this thread no call fails or is counted.
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
// Not inlined: g++ would warn about free() of memory from operator new, although both are defined here.
[[gnu::noinline]] inline void give_back(void* memory)
{
    if (memory != nullptr) living_allocations.fetch_sub(1, std::memory_order_relaxed);
    std::free(memory);
}

/// Whether this call must fail.
inline bool fails(const char* name)
{
    if (spared || std::strcmp(name, failing_call) != 0 || calls_before-- != 0) return false;
    has_failed = true;
    errno = fails_with;
    return true;
}

/// Calls attempt() repeatedly, with its first allocation failing, then its second, until none fails; returns the number
/// of allocations. `look` checks the state after each failure.
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

/// Runs it; other exceptions are not caught.
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
        FAIL("an unexpected exception was thrown");
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
// stable_sort allocates with this overload. Without it, the sanitizer's version would be called.
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
