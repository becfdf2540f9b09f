// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed_kit/view/blocks.hpp>

using namespace heed;

TEST_CASE("full, partial and empty blocks are drawn differently")
{
    CHECK(view::blocks(causal{}, 4, 4, 2) == "▒·\n█▒\n");
    CHECK(view::blocks(causal{}, 2, 4, 2) == "█▒\n");  // the last query is aligned with the last key
    CHECK(view::blocks(sliding_window{1}, 3, 3, 1) == "█··\n·█·\n··█\n");
    CHECK(view::blocks(causal{} & sliding_window{2}, 5, 5, 2) == "▒··\n▒▒·\n·▒█\n");
    CHECK(view::blocks([](score_index p) { return p.batch == 1; }, 2, 2, 2, 1) == "█\n");
    CHECK(view::blocks(causal{}, 0, 4, 2).empty());
    CHECK_THROWS_WITH_AS(view::blocks(causal{}, 2, 2, 0), doctest::Contains("blocks of size 0"), shape_error);
}
