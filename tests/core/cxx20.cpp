// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/cxx20.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using namespace heed;

namespace {

struct empty {};
struct with_empty {
    HEED_NO_UNIQUE_ADDRESS empty nothing;
    std::uint32_t number;
};

}  // namespace

TEST_CASE("bit_cast keeps the bits, at compile time and at run time")
{
    static_assert(detail::bit_cast<std::uint32_t>(1.0F) == 0x3f800000U);
    const float minus = -0.0F;
    CHECK(detail::bit_cast<std::uint32_t>(minus) == 0x80000000U);
    CHECK(detail::bit_cast<double>(std::uint64_t{0x4009000000000000U}) == 3.125);
}

TEST_CASE("a struct with an empty first member keeps the other members, also inside another struct")
{
    struct outer {
        with_empty inner;
        std::uint32_t behind;
    };
    const outer x{with_empty{empty{}, 7}, 9};
    CHECK(x.inner.number == 7);
    CHECK(x.behind == 9);
}
