// SPDX-License-Identifier: BSD-3-Clause
#include <heed/io/dtype.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

using namespace heed::io;

TEST_CASE("which types hold which")
{
    for (const auto& pair : {std::pair{"F16", "F32"},
                             {"BF16", "F32"},
                             {"BF16", "F64"},
                             {"F32", "F64"},
                             {"U8", "I16"},
                             {"U8", "F16"},
                             {"I8", "BF16"},
                             {"I32", "F64"},
                             {"I32", "I64"},
                             {"U32", "I64"},
                             {"I16", "F32"},
                             {"BOOL", "U8"},
                             {"BOOL", "F32"},
                             {"F8_E4M3", "F8_E4M3"}}) {
        CAPTURE(pair.first);
        CAPTURE(pair.second);
        CHECK(reads_as(pair.first, pair.second));
    }
    for (const auto& pair : {std::pair{"F32", "F16"},
                             {"F16", "BF16"},
                             {"BF16", "F16"},
                             {"F64", "F32"},
                             {"I32", "F32"},
                             {"I64", "F64"},
                             {"U8", "I8"},
                             {"I8", "U8"},
                             {"I8", "U64"},
                             {"U64", "I64"},
                             {"U8", "BOOL"},
                             {"F32", "I64"},
                             {"F16", "I64"},
                             {"I16", "F16"},
                             {"F8_E4M3", "F32"}}) {
        CAPTURE(pair.first);
        CAPTURE(pair.second);
        CHECK(!reads_as(pair.first, pair.second));
    }
    CHECK(dtype_size("F16") == 2u);
    CHECK(dtype_size("BOOL") == 1u);
    CHECK(!dtype_size("F8_E4M3"));
    static_assert(storable<float16> && storable<bool> && storable<std::int8_t> && !storable<char>);
}
