// SPDX-License-Identifier: BSD-3-Clause

#include <heed/ops/sampling.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <cstdint>
#include <limits>
#include <set>

using namespace heed;

TEST_CASE("argmax: 1 at the first maximum of each row, or of each dimension")
{
    constexpr double none = -std::numeric_limits<double>::infinity();
    const array<double, 2> e{{1, 3, 3, 9}, {none, none, 5, 5}, {-2, -1, -3, 0}};
    CHECK(support::same_bits(ops::argmax(e, lengths{3, 2, 4}),
                             array<double, 2>{{0.0, 1.0, 0.0, 0.0}, {0.0, 0.0, 0.0, 0.0}, {0.0, 0.0, 0.0, 1.0}}));
    const array<double, 3> each{{{1, 5}, {2, 4}}};
    CHECK(support::same_bits(ops::argmax(each, lengths{2}), array<double, 3>{{{0.0, 1.0}, {1.0, 0.0}}}));
    CHECK(support::message_of<shape_error>([&] {
              (void)ops::argmax(e, lengths{3, 5, 1});
          }) == "argmax: the length of row 1 is 5 but there are only 4 positions");
}

TEST_CASE("argmax replaces every number of its result")
{
    const array<double, 2> e{{1, 3, 2}, {4, 0, 9}};
    array<double, 2> y{{7, 7, 7}, {7, 7, 7}};
    ops::argmax_op::forward<double, 2>(view_of(e), lengths{3, 2}, tensor_view<double, 2>{y.data(), y.shape()});
    CHECK(support::same_bits(y, array<double, 2>{{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}}));
}

TEST_CASE("streams differ by seed, step and purpose")
{
    std::set<std::uint64_t> streams;
    for (const std::uint64_t seed : {0u, 1u, 2u}) {
        for (const std::size_t step : {0u, 1u, 2u}) {
            for (const auto use : {ops::chance::position, ops::chance::noise, ops::chance::weights})
                streams.insert(ops::stream_of(seed, step, use));
        }
    }
    CHECK(streams.size() == 27);
    static_assert(ops::stream_of(3, 4, ops::chance::noise) == ops::stream_of(3, 4, ops::chance::noise));
}
