// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <string>

#include "../../tools/support/processor.hpp"

namespace {

std::string first_missing(const char* features)
{
    const char* missing = "";
    const std::size_t length = program::missing_feature(features, missing);
    return {missing, length};
}

}  // namespace

TEST_CASE("a processor supports the instructions of this program; unknown ones are reported")
{
    CHECK(first_missing(HEED_BUILT_FOR) == "");
    CHECK(first_missing("") == "");
    CHECK(first_missing("none-such ") == "none-such");
    CHECK(first_missing(HEED_BUILT_FOR "none-such avx") == "none-such");
}
