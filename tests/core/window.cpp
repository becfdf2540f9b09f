// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/window.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using namespace heed;

TEST_CASE("a window around a place is what of it is real")
{
    const lengths real{5, 5, 5, 2, 0, 5};
    const std::vector<std::size_t> centres{0, 2, 4, 2, 0, 7};
    const auto w = window::around(real, 1, [&](std::size_t b) { return centres[b]; });
    CHECK(w.width == 3);
    CHECK(w.begin == std::vector<std::size_t>{0, 1, 3, 1, 0, 0});
    const std::vector<std::size_t> count(w.count.data(), w.count.data() + w.count.batch());
    CHECK(count == std::vector<std::size_t>{2, 3, 2, 1, 0, 0});
}
