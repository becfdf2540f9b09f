// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Lets one allocation, or one call of the system, fail. It replaces operator new, so exactly one source file of a
// program includes it; calls of the system fail where the program is linked with --wrap (see tests/CMakeLists.txt).

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>

namespace support {

/// The allocation of the whole program that fails, counted from 1; 0: none. It fails once.
inline std::atomic<long> failing_allocation{0};

/// How many bytes all allocations together have asked for.
inline std::atomic<std::size_t> asked_for{0};

/// The call that fails: its name, and how many come before it.
inline const char* failing_call = "";
inline long calls_before = 0;
inline int fails_with = 0;  // errno; 0: half of what should be written is
inline bool has_failed = false;

inline void* allocated(std::size_t bytes, std::size_t alignment)
{
    asked_for.fetch_add(bytes, std::memory_order_relaxed);
    if (failing_allocation.load(std::memory_order_relaxed) > 0 && failing_allocation.fetch_sub(1) == 1)
        throw std::bad_alloc();
    void* memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
// Not inlined: g++ would see free() of memory from operator new, and not that both are ours.
[[gnu::noinline]] inline void give_back(void* memory) { std::free(memory); }

/// Whether this call is the one that fails.
inline bool fails(const char* name)
{
    if (std::strcmp(name, failing_call) != 0 || calls_before-- != 0) return false;
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

extern "C" {
ssize_t __real_write(int file, const void* bytes, std::size_t size);
ssize_t __real_pwrite(int file, const void* bytes, std::size_t size, off_t place);
int __real_fsync(int file);
int __real_rename(const char* from, const char* to);
int __real_close(int file);
int __real_open(const char* path, int flags, mode_t mode);
int __real_link(const char* from, const char* to);
int __real_fchmod(int file, mode_t mode);
int __real_flock(int file, int what);

ssize_t __wrap_write(int file, const void* bytes, std::size_t size);
ssize_t __wrap_pwrite(int file, const void* bytes, std::size_t size, off_t place);
int __wrap_fsync(int file);
int __wrap_rename(const char* from, const char* to);
int __wrap_close(int file);
int __wrap_open(const char* path, int flags, mode_t mode);
int __wrap_link(const char* from, const char* to);
int __wrap_fchmod(int file, mode_t mode);
int __wrap_flock(int file, int what);

ssize_t __wrap_write(int file, const void* bytes, std::size_t size)
{
    if (!support::fails("write")) return __real_write(file, bytes, size);
    return support::fails_with == 0 ? __real_write(file, bytes, (size + 1) / 2) : -1;
}
ssize_t __wrap_pwrite(int file, const void* bytes, std::size_t size, off_t place)
{
    if (!support::fails("pwrite")) return __real_pwrite(file, bytes, size, place);
    return support::fails_with == 0 ? __real_pwrite(file, bytes, (size + 1) / 2, place) : -1;
}
int __wrap_fsync(int file) { return support::fails("fsync") ? -1 : __real_fsync(file); }
int __wrap_rename(const char* from, const char* to) { return support::fails("rename") ? -1 : __real_rename(from, to); }
int __wrap_close(int file)
{
    const bool fails = support::fails("close");
    const int reason = errno, done = __real_close(file);  // Linux closes it all the same
    if (fails) errno = reason;
    return fails ? -1 : done;
}
// Without a mode where none is needed; the register then holds anything, which the system ignores.
int __wrap_open(const char* path, int flags, mode_t mode)
{
    return support::fails("open") ? -1 : __real_open(path, flags, mode);
}
int __wrap_link(const char* from, const char* to) { return support::fails("link") ? -1 : __real_link(from, to); }
int __wrap_fchmod(int file, mode_t mode) { return support::fails("fchmod") ? -1 : __real_fchmod(file, mode); }
int __wrap_flock(int file, int what) { return support::fails("flock") ? -1 : __real_flock(file, what); }
}
