// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/prefetch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <support/contexts_of_tiles.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::contexts_of, test::head_of_numbers;

TEST_CASE("prefetching a next head of other sizes, or none, does not change contexts")
{
    head_of_numbers<float> x(40, 130, 3, 5), after(7, 12, 4, 2);
    const auto alone = contexts_of(x, tiles::softmax{}, not_behind{});
    const auto next = after.head();
    auto of = x.head();
    of.next = &next;
    const tiles::unmodified plain;
    const not_behind mask;
    const tiles::score_mod_of<float, tiles::unmodified, not_behind> mod(plain, mask);
    std::vector<float> contexts(alone.contexts.size()), numbers(alone.numbers.size());
    tiles::with_registers<float>(x.S, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<float, registers>;
        for (std::size_t s = 0; s < x.S; s += width)
            tiles::forward<registers>(tiles::query_block<float>{of, s, std::min(width, x.S - s), mod}, tiles::softmax{},
                                      tiles::rows<float>{contexts.data(), x.D}, numbers.data());
    });
    CHECK(contexts == alone.contexts);
    CHECK(numbers == alone.numbers);
}

TEST_CASE("prefetching ends with the last row; a matrix without data has no rows")
{
    const std::vector<float> x(100, 1);
    tiles::prefetch<const float> rows({x.data(), 20}, {0, 5}, 17);
    CHECK_FALSE(rows.done());
    rows.lines(9);
    CHECK_FALSE(rows.done());
    rows.lines(1);  // five rows of two lines
    CHECK(rows.done());
    CHECK(tiles::prefetch<const float>({nullptr, 0}, {0, 5}, 17).done());
    CHECK(tiles::prefetch<const float>({x.data(), 20}, {5, 5}, 17).done());
    CHECK(tiles::prefetch<const float>{}.done());
}
