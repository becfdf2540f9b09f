// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Counts a program's allocations. It replaces operator new, so exactly one source file of the program includes it.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace support {

inline std::atomic<std::size_t> allocations{0};
inline std::atomic<std::size_t> large{0}, count_from{0};  // `large`: of at least `count_from` bytes, if not 0

inline void* counted(std::size_t bytes, std::size_t alignment)
{
    ++allocations;
    if (count_from != 0 && bytes >= count_from) ++large;
    void* memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
// Not inlined: g++ would warn about free() of memory from operator new, although both are defined here.
[[gnu::noinline]] inline void give_back(void* memory) { std::free(memory); }

}  // namespace support

void* operator new(std::size_t bytes) { return support::counted(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes) { return support::counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t to)
{
    return support::counted(bytes, static_cast<std::size_t>(to));
}
void* operator new[](std::size_t bytes, std::align_val_t to)
{
    return support::counted(bytes, static_cast<std::size_t>(to));
}
// Replaces the sanitizer's version; free() must not get memory from that.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    try {
        return support::counted(bytes, alignof(std::max_align_t));
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return operator new(bytes, std::nothrow); }
void operator delete(void* memory) noexcept { support::give_back(memory); }
void operator delete[](void* memory) noexcept { support::give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { support::give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { support::give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { support::give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { support::give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { support::give_back(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { support::give_back(memory); }
