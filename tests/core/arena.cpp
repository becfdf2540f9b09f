// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/arena.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

using heed::arena;

TEST_CASE("the arena")
{
    arena memory;
    CHECK(memory.capacity() == 0);
    double* a = memory.array_of<double>(3);
    const auto before = memory.mark();
    double* b = memory.array_of<double>(1);
    CHECK(reinterpret_cast<std::uintptr_t>(a) % arena::alignment == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(b) % arena::alignment == 0);
    CHECK(b != a);
    CHECK(memory.used() == 2 * arena::alignment);
    memory.release(before);
    CHECK(memory.used() == arena::alignment);
    CHECK(memory.array_of<double>(1) == b);  // free again
    // Larger than any block so far, then much more; earlier memory does not move.
    *a = 42;
    char* large = memory.array_of<char>(std::size_t{5} << 20);
    large[0] = large[(std::size_t{5} << 20) - 1] = 1;
    for (int i = 0; i < 100; ++i) memory.array_of<char>(100000)[99999] = 1;
    CHECK(*a == 42);
    const std::size_t total = memory.capacity();
    memory.clear();
    CHECK(memory.capacity() == total);
    memory.array_of<char>(total);
    CHECK(memory.used() == total);
    CHECK(memory.capacity() == total);  // a single contiguous block by now
    CHECK(memory.allocate(0) != nullptr);

    arena tight;  // an allocation lies within one block
    for (int i = 0; i < 2; ++i) tight.allocate(600000);
    CHECK(tight.capacity() >= 1200000);
}
