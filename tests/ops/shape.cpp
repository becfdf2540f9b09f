// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/shape.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cstdint>
#include <string>
#include <vector>

using namespace heed;
using support::random;

// Slices of tensors: values compared with scalar loops, and gradients.

TEST_CASE("rows: a view of a matrix that passes its gradient to its rows")
{
    const auto x = random({5, 3}, 1);
    const auto part = ops::slice_rows(x, 1u, 4u);
    CHECK(part.data == x.data() + 3);
    CHECK(part.shape == shape_of_rank<2>{3, 3});
    CHECK(ops::slice_rows(x, 5u, 5u).size() == 0);
    CHECK_GRADIENT([](const auto& W) { return ops::slice_rows(W, 1u, 4u); }, x);
    CHECK_GRADIENT([](const auto& h, const auto& W) { return ops::linear(h, ops::slice_rows(W, 2u, 5u)); },
                   random({2, 3}, 2), x);
    // Both slices and the whole, each more than once.
    CHECK_GRADIENT(
        [](const auto& h, const auto& W) {
            const auto y =
                ops::add(ops::linear(h, ops::slice_rows(W, 0u, 2u)), ops::linear(h, ops::slice_rows(W, 2u, 4u)));
            return ops::add(y, ops::linear(ops::linear(h, ops::slice_rows(W, 1u, 3u)), ops::slice_rows(W, 0u, 3u)));
        },
        random({2, 2}, 3), random({4, 3}, 4));
    CHECK(support::message_of<shape_error>([&] { ops::slice_rows(x, 3u, 6u); }) ==
          "slice_rows: rows 3 to 6 of [5,3], which has 5 rows");
}

TEST_CASE("columns_of: selected columns, in any order, also repeated")
{
    const std::vector<std::uint32_t> columns{3, 0, 3};
    const auto W = random({2, 4}, 1);
    CHECK(support::same_bits(ops::columns_of(W, columns),
                             array<double, 2>{{W(0, 3), W(0, 0), W(0, 3)}, {W(1, 3), W(1, 0), W(1, 3)}}));
    CHECK(ops::columns_of(W, std::vector<std::uint32_t>{}).shape() == shape_of_rank<2>{2, 0});
    const auto f = [&](const auto& x) { return ops::columns_of(x, columns); };
    CHECK_GRADIENT(f, W);
    CHECK_GRADIENT(f, random({4}, 2));
    CHECK(support::message_of<shape_error>([&] {
              f(random({2, 3}, 1));
          }) == "columns_of: column 3 of [2,3], which has only 3 columns; columns count from 0");
}

TEST_CASE("rows_of: selected rows, in any order, also repeated")
{
    const std::vector<std::size_t> rows{2, 0, 2};
    const auto x = random({3, 2}, 1);
    CHECK(support::same_bits(ops::rows_of(x, rows),
                             array<double, 2>{{x(2, 0), x(2, 1)}, {x(0, 0), x(0, 1)}, {x(2, 0), x(2, 1)}}));
    CHECK(ops::rows_of(x, std::vector<std::size_t>{}).shape() == shape_of_rank<2>{0, 2});
    const auto f = [&](const auto& y) { return ops::rows_of(y, rows); };
    CHECK_GRADIENT(f, x);
    CHECK_GRADIENT(f, random({3, 2, 5}, 2));
    CHECK_GRADIENT(f, random({4}, 3));
    CHECK(support::message_of<shape_error>([&] {
              f(random({2, 3}, 1));
          }) == "rows_of: row 2 of [2,3], which has only 2 rows; rows count from 0");
}

TEST_CASE("positions_between: positions of one sentence, with their gradient")
{
    const auto x = random({1, 4, 2}, 1);
    CHECK(support::same_bits(ops::positions_between(x, 1u, 2u),
                             array<double, 3>{{{x(0, 1, 0), x(0, 1, 1)}, {x(0, 2, 0), x(0, 2, 1)}}}));
    CHECK_GRADIENT([](const auto& v) { return ops::positions_between(v, 1u, 2u); }, x);
    CHECK_GRADIENT([](const auto& v) { return ops::positions_between(v, 2u, 2u); }, random({1, 4}, 2));
}

TEST_CASE("append adds after the existing positions; transpose of a matrix")
{
    const auto x = random({2, 3, 4}, 1), z = random({2, 2, 4}, 2);
    const auto y = ops::append(x, z);
    REQUIRE(y.shape() == shape_of_rank<3>{2, 5, 4});
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t t = 0; t < 5; ++t) {
            for (std::size_t k = 0; k < 4; ++k) CHECK(y(b, t, k) == (t < 3 ? x(b, t, k) : z(b, t - 3, k)));
        }
    }
    CHECK_GRADIENT([](const auto& a, const auto& c) { return ops::append(a, c); }, x, z);
    CHECK(ops::append(random({2, 0, 4}, 3), z) == z);
    CHECK(support::message_of<shape_error>([&] {
              ops::append(x, random({2, 2, 3}, 3));
          }) ==
          "append: the second argument is [2,2,3] but must be [2,2,4] (the rows and width of the first, [2,3,4])");

    const auto W = random({2, 5}, 4);
    const auto transposed = ops::transpose(W);
    REQUIRE(transposed.shape() == shape_of_rank<2>{5, 2});
    for (std::size_t i = 0; i < 10; ++i) CHECK(transposed(i / 2, i % 2) == W(i % 2, i / 2));
    CHECK_GRADIENT([](const auto& a) { return ops::transpose(a); }, W);
}

TEST_CASE("positions and steps that do not exist are rejected")
{
    const auto x = random({1, 4, 2}, 1);
    ad::tape<double> on;
    const auto said = [](const auto& f) { return support::message_of<shape_error>(f); };
    const std::string behind =
        "positions_between: 3 positions from 2 on of [1,4,2]; they must be within one sentence, [1,T] or [1,T,N]";
    CHECK(said([&] { ops::positions_between(x, 2, 3); }) == behind);
    CHECK(said([&] { ops::positions_between(on.parameter(x), 2, 3); }) == behind);
    CHECK(support::contains(said([&] { ops::positions_between(random({2, 4}, 2), 0, 1); }), "within one sentence"));
    CHECK(ops::positions_between(x, 4, 0).size() == 0);
    CHECK(shape_of(ops::positions_between(random({0, 4, 2}, 2), 1, 3)) == shape_of_rank<3>{0, 3, 2});
    auto steps = random({2, 3, 4}, 3);
    CHECK(said([&] {
              ops::put_step(steps, 3, random({2, 4}, 4));
          }) == "put_step: step 3 of [2,3,4], which has only 3 steps");
}

TEST_CASE("moving numbers: values")
{
    const auto x = random({3, 2, 4}, 1);
    CHECK(ops::step_of(x, std::size_t{1})(2, 3) == x(2, 1, 3));
    CHECK(ops::block(x, std::size_t{2})(1, 3) == x(2, 1, 3));
    CHECK(ops::swap_axes(x)(1, 2, 3) == x(2, 1, 3));
    CHECK(support::same_bits(ops::swap_axes(ops::swap_axes(x)), x));
    const auto joined = ops::concat(x, random({3, 2, 1}, 2));
    CHECK(joined.shape() == shape_of_rank<3>{3, 2, 5});
    CHECK(joined(2, 1, 3) == x(2, 1, 3));
    CHECK(joined(2, 1, 4) == random({3, 2, 1}, 2)(2, 1, 0));
    CHECK(support::same_bits(ops::stack(std::vector{ops::block(x, std::size_t{0}), ops::block(x, std::size_t{1}),
                                                    ops::block(x, std::size_t{2})}),
                             x));
}

TEST_CASE("moving numbers: gradients")
{
    CHECK_GRADIENT([](const auto& a, const auto& b) { return ops::concat(a, b); }, random({2, 3}, 1),
                   random({2, 1}, 2));
    CHECK_GRADIENT([](const auto& a, const auto& b) { return ops::concat(a, b); }, random({2, 2, 3}, 1),
                   random({2, 2, 17}, 2));
    support::check_empty([](const auto& a, const auto& b) { return ops::concat(a, b); }, random({2, 0}, 1),
                         random({2, 0}, 2));

    CHECK_GRADIENT([](const auto& x) { return ops::step_of(x, std::size_t{1}); }, random({2, 3, 4}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::block(x, std::size_t{2}); }, random({3, 2, 4}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::block(ops::tanh(x), std::size_t{2}); }, random({3, 2, 4}, 1));
    // A value is used directly, through a slice, and through a slice of a slice.
    CHECK_GRADIENT(
        [](const auto& x) {
            const auto y = ops::tanh(x);
            const auto piece = ops::block(y, std::size_t{1});
            return ops::add(
                ops::multiply(piece, ops::step_of(y, std::size_t{0})),
                ops::scale(ops::block(ops::block(ops::stack(std::vector{y, y}), std::size_t{1}), std::size_t{0}), 3.0));
        },
        random({2, 2, 4}, 1));

    CHECK_GRADIENT(
        [](const auto& a, const auto& b) {
            return ops::stack(std::vector{ops::multiply(a, b), ops::add(a, b)});
        },
        random({2, 3}, 1), random({2, 3}, 2));
    CHECK_GRADIENT([](const auto& x) { return ops::swap_axes(x); }, random({2, 3, 4}, 1));
    support::check_empty([](const auto& x) { return ops::swap_axes(x); }, random({2, 0, 3}, 1));
}

TEST_CASE("repeat: gradients")
{
    CHECK_GRADIENT([](const auto& x) { return ops::repeat(x, std::size_t{3}); }, random({4}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::repeat(x, std::size_t{1}); }, random({1}, 1));
}
