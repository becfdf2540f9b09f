// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <new>

#include <malloc.h>
#include <stdlib.h>  // mkdtemp

// operator new, aligned or not, with a limit; and files. A file that claims more data than it has is detected by the
// allocations of its reader, whether or not the machine has that much memory.

namespace {

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
std::atomic<std::size_t> now{0}, limit{no_limit};

[[gnu::noinline]] void* taken(std::size_t bytes, std::size_t alignment = 0)
{
    if (bytes > no_limit / 2 || now + bytes > limit) {
        const std::size_t had = now, most = limit.exchange(no_limit);
        fuzz::fail("allocates " + std::to_string(bytes) + " bytes; it has " + std::to_string(had) +
                   " already, and may have " + std::to_string(most));
    }
    void* const memory = alignment == 0
                             ? std::malloc(bytes)
                             : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    now += ::malloc_usable_size(memory);
    return memory;
}

[[gnu::noinline]] void given(void* memory)
{
    now -= ::malloc_usable_size(memory);
    std::free(memory);
}

/// Removed with its files when the program ends.
class folder {
public:
    folder()
    {
        std::string name = (std::filesystem::temp_directory_path() / "heed-fuzz-XXXXXX").string();
        if (std::filesystem::is_directory("/dev/shm")) name = "/dev/shm/heed-fuzz-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) fuzz::fail("no temporary directory");
        path = name;
    }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;
    ~folder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }

    std::filesystem::path path;
};

}  // namespace

void* operator new(std::size_t bytes) { return taken(bytes); }
void* operator new[](std::size_t bytes) { return taken(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return taken(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return taken(bytes); }
void* operator new(std::size_t bytes, std::align_val_t to) { return taken(bytes, static_cast<std::size_t>(to)); }
void* operator new[](std::size_t bytes, std::align_val_t to) { return taken(bytes, static_cast<std::size_t>(to)); }
void operator delete(void* memory) noexcept { given(memory); }
void operator delete[](void* memory) noexcept { given(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { given(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { given(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { given(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { given(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { given(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { given(memory); }
void operator delete(void* memory, std::size_t) noexcept { given(memory); }
void operator delete[](void* memory, std::size_t) noexcept { given(memory); }

namespace fuzz {

void fail(const std::string& what)
{
    std::fprintf(stderr, "fuzz: %s\n", what.c_str());
    std::abort();
}

allowance::allowance(std::size_t bytes)
{
    static const std::size_t margin = [] {
        const char* const text = std::getenv("HEED_FUZZ_MARGIN");
        return text == nullptr ? std::size_t{1} : std::max<std::size_t>(1, std::strtoul(text, nullptr, 10));
    }();
    limit = now + margin * bytes;
}
allowance::~allowance() { limit = no_limit; }

std::filesystem::path path_of(const std::string& name)
{
    static const folder own;
    return own.path / name;
}

std::filesystem::path file_of(std::string_view bytes, const std::string& name)
{
    std::filesystem::path path = path_of(name);
    std::ofstream stream(path, std::ios::binary | std::ios::trunc);
    if (!stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) fail("cannot write a file");
    return path;
}

}  // namespace fuzz
