// SPDX-License-Identifier: BSD-3-Clause
#include <heed/io/npy.hpp>
#include <heed/io/safetensors.hpp>

#include <doctest/doctest.h>

#include <support/temporary_directory.hpp>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>

#include <malloc.h>

// The bytes allocated now and the maximum so far: a size that a file claims must not be allocated.

namespace {

std::atomic<std::size_t> now{0}, most{0};

[[gnu::noinline]] void* taken(std::size_t bytes)
{
    void* const memory = std::malloc(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    const std::size_t with = now += ::malloc_usable_size(memory);
    if (with > most) most = with;
    return memory;
}
[[gnu::noinline]] void given(void* memory)
{
    now -= ::malloc_usable_size(memory);
    std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) { return taken(bytes); }
void* operator new[](std::size_t bytes) { return taken(bytes); }
// The standard library's sorts call this overload; a sanitizer's would not match our delete.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    try {
        return taken(bytes);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void operator delete(void* memory) noexcept { given(memory); }
void operator delete[](void* memory) noexcept { given(memory); }
void operator delete(void* memory, std::size_t) noexcept { given(memory); }
void operator delete[](void* memory, std::size_t) noexcept { given(memory); }

namespace {

/// Peak memory that f() allocates, in addition to the memory allocated before.
std::size_t most_during(const auto& f)
{
    const std::size_t before = now;
    most = before;
    try {
        f();
    } catch (const heed::error&) {}
    return most - before;
}

std::string with_size(const std::string& header)
{
    std::string bytes(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
    return bytes + header;
}

std::size_t most_for(const std::string& bytes)
{
    const temporary_directory directory;
    const auto path = directory.write("file", bytes);
    return most_during([&] { heed::io::load(path, heed::io::storage::copied); });
}

}  // namespace

TEST_CASE("sizes that a file claims are not allocated")
{
    constexpr std::size_t little = 20'000;
    CHECK(most_for(std::string("\0\xE1\xF5\5\0\0\0\0{}", 10)) < little);
    CHECK(most_for(with_size(R"({"t":{"dtype":"F32","shape":[1000000000],"data_offsets":[0,4000000000]}})")) < little);
    CHECK(most_for(with_size(R"({"t":{"dtype":"F4","shape":[1000000000],"data_offsets":[0,4000000000]}})")) < little);
    CHECK(most_for(with_size("{\"t\":" + std::string(1'000'000, '['))) < 3'200'000);

    const temporary_directory directory;
    const std::string header = "{'descr': '>f4', 'fortran_order': True, 'shape': (1000, 1000000), }";
    const auto path =
        directory.write("file", std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header);
    CHECK(most_during([&] { heed::io::load_npy(path); }) < little);
}

TEST_CASE("reading a file takes a small multiple of its size, for any number of tensors")
{
    std::string header = "{";
    for (int i = 0; i < 40'000; ++i)
        header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
    header += '}';
    CHECK(most_for(with_size(header)) < 16 * header.size());

    // In a mapped file, a tensor's values are not allocated.
    const temporary_directory directory;
    heed::io::archive large;
    large.tensors.push_back(heed::io::tensor_entry::of("x", {1'000'000}, std::vector<float>(1'000'000, 1)));
    heed::io::save(directory.path() / "file", large);
    CHECK(most_during([&] { CHECK(heed::io::load(directory.path() / "file").tensors.size() == 1); }) < 20'000);
    CHECK(most_during([&] { heed::io::load(directory.path() / "file", heed::io::storage::copied); }) < 4'100'000);
}
