// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/rows.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <array>
#include <cstddef>
#include <vector>

using namespace heed;
using support::random;

namespace {

/// y = x reversed, followed by two numbers of `fill`.
struct reversed_op : ops::move_operation<reversed_op, double> {
    static shape_of_rank<1> shape(const auto& x, double) { return {x.shape[0] + 2}; }
    static double fill(double number) { return number; }
    static void each_move(const auto& x, double, auto move)
    {
        for (std::size_t i = 0; i < x[0]; ++i) move(i, x[0] - 1 - i);
        move.nothing(x[0], 2);
    }
};

}  // namespace

TEST_CASE("an operation that moves numbers: their targets, the fill values, and the gradient")
{
    const reversed_op reversed;
    const array<double, 1> x{1, 2, 3};
    CHECK(support::same_bits(reversed(x, 7.0), array<double, 1>{3.0, 2.0, 1.0, 7.0, 7.0}));
    CHECK_GRADIENT([&](const auto& v) { return reversed(v, 7.0); }, random({5}, 1));
    CHECK(support::same_bits(reversed(random({0}, 1), 7.0), array<double, 1>{7.0, 7.0}));
}

TEST_CASE("loops over rows, positions and columns visit each once, on any number of threads")
{
    for (const std::size_t count : {std::size_t{1}, std::size_t{3}}) {
        set_threads(count);
        std::vector<int> rows(1000), positions(600), numbers(24);
        ops::detail::each_row(1000, 1000, [at = rows.data()](std::size_t i) { ++at[i]; });
        CHECK(rows == std::vector<int>(1000, 1));
        ops::detail::each_position(
            20, 30, 1000, [at = positions.data()](std::size_t b, std::size_t i) { at[i] += b == i / 30 ? 1 : 100; });
        CHECK(positions == std::vector<int>(600, 1));
        ops::detail::each_column(
            shape_of_rank<3>{2, 4, 3}, lengths{3, 0}, 1,
            [at = numbers.data()](std::size_t begin, std::size_t step, std::size_t real, std::size_t all) {
                for (std::size_t t = 0; t < all; ++t) at[begin + t * step] += t < real ? 1 : 10;
            });
        for (std::size_t i = 0; i < 24; ++i) CHECK(numbers[i] == (i < 9 ? 1 : 10));
    }
    set_threads(1);
    CHECK(ops::detail::rows_of(shape_of_rank<3>{2, 3, 4}) == 6);
    CHECK(ops::detail::rows_of(shape_of_rank<1>{4}) == 1);
}
