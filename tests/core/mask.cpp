// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/mask.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

using namespace heed;
using support::message_of;

TEST_CASE("lengths")
{
    const lengths real{3, 0, 2};
    CHECK(real.batch() == 3);
    CHECK(real[2] == 2);
    CHECK(lengths::full(2, 5)[0] == 5);
    CHECK(lengths::full(2, 5)[1] == 5);
    CHECK(lengths{}.batch() == 0);
    real.require("here", 3, 3);
    CHECK(message_of<shape_error>([&] { real.require("here", 2, 3); }) ==
          "here: 3 lengths for a batch of 2 rows; give one length per row");
    CHECK(message_of<shape_error>([&] { real.require("here", 3, 2); }) ==
          "here: the length of row 0 is 3 but there are only 2 positions");
}

TEST_CASE("lengths of some rows, and views that know their first row in the batch")
{
    const lengths real{3, 0, 2, 5};
    const auto some = real.rows({3, 0, 3});
    CHECK(some.batch() == 3);
    CHECK(some[0] == 5);
    CHECK(some[1] == 3);
    const auto part = lengths_view(real).rows(1, 3).rows(1, 2);
    CHECK(part.first_row() == 2);
    CHECK(part[1] == 5);
    CHECK(message_of<shape_error>([&] { (void)real.rows({4}); }) ==
          "lengths::rows: row 4 of a batch of 4; rows count from 0");
}

TEST_CASE("boolean masks: false by default; rows; a different shape is rejected")
{
    boolean_mask<3> mask(shape_of_rank<3>{2, 2, 3});
    for (std::size_t i = 0; i < 12; ++i) CHECK(mask[i] == 0);
    mask[7] = 1;
    const auto second = boolean_mask_view<3>(mask).rows(1, 1);
    CHECK(second.shape() == shape_of_rank<3>{1, 2, 3});
    CHECK(second[1] == 1);
    const boolean_mask of(array<bool, 2>{{true, false}});
    CHECK(of[0] == 1);
    CHECK(of[1] == 0);
    CHECK(message_of<shape_error>([&] {
              of.require("here", {2, 2});
          }) == "here: the boolean mask is [1,2] but must be [2,2] (one truth value for each position, true = attend)");
}

TEST_CASE("a range around a position is clipped to the real positions")
{
    const std::size_t real[] = {5, 5, 5, 2, 0, 5}, center[] = {0, 2, 4, 2, 0, 7};
    const std::size_t first[] = {0, 1, 3, 1, 0, 0}, count[] = {2, 3, 2, 1, 0, 0};
    for (std::size_t b = 0; b < 6; ++b) {
        const auto here = position_range::around(center[b], 1, real[b]);
        CHECK(here.first == first[b]);
        CHECK(here.count == count[b]);
    }
}

TEST_CASE("lengths of any integer type, and for heads")
{
    const lengths real(std::vector<std::int64_t>{3, 0, 2});
    CHECK(real.batch() == 3);
    CHECK(real[2] == 2);
    CHECK(lengths(heed::array<int, 1>{4, 5})[1] == 5);
    CHECK_THROWS_WITH_AS(lengths(std::vector<int>{1, -2}),
                         "lengths: the length of row 1 is -2; a length must not be negative", shape_error);
    const lengths all = real.for_heads(2);
    CHECK(all.batch() == 6);
    CHECK(all[5] == 2);
    const lengths_view some = lengths_view(all).rows(3, 2);
    CHECK(some.sentence_of(0) == 1);
    CHECK(some.head_of(0) == 1);
    CHECK(some.sentence_of(1) == 2);
    CHECK(some.head_of(1) == 0);
}

TEST_CASE("copies of a mask share its values until one is changed")
{
    boolean_mask<2> mask(shape_of_rank<2>{2, 3});
    mask[1] = 1;
    const boolean_mask<2> before = mask;
    CHECK(before.data() == mask.data());
    mask[1] = 0;
    mask[4] = 1;
    CHECK(before[1] == 1);
    CHECK(before[4] == 0);
    CHECK(mask[4] == 1);
}
