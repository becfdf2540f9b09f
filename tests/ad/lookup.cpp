// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/lookup.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace heed;
using support::random;

namespace {

word_ids some_words()
{
    word_ids words(2, 2);
    words.ids = {4, 1, 4, 0};
    return words;
}

}  // namespace

TEST_CASE("the gradient of a table lists each looked-up row once, in ascending order")
{
    const auto table = random({6, 2}, 1);
    ad::tape<double> on;
    const auto E = on.parameter(table);
    const auto y = ops::lookup(E, some_words());
    const auto by = support::uneven(y.shape());
    on.backward(ops::dot(y, by));
    const auto rows = ad::gradient_rows(E);
    REQUIRE(std::vector(rows.ids.begin(), rows.ids.end()) == std::vector<std::uint32_t>{0, 1, 4});
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(rows.rows[i] == by(1, 1, i));
        CHECK(rows.rows[2 + i] == by(0, 1, i));
        CHECK(rows.rows[4 + i] == by(0, 0, i) + by(1, 0, i));
    }
    ad::scale_gradient(E, 0.5);
    CHECK(ad::gradient_rows(E).rows[2] == 0.5 * by(0, 1, 0));
    CHECK(on.gradient(E)[1].data[0] == 0.5 * by(0, 1, 0));
    CHECK(on.gradient(E)[5].data[1] == 0);
    CHECK(ad::gradient_rows(E).rows == nullptr);  // the whole gradient was requested
}

TEST_CASE("gradients of rows are added to rows, and to the gradient of a whole table")
{
    const auto table = random({6, 2}, 1);
    const std::vector<std::uint32_t> ids{1, 5};
    const std::vector<double> numbers{10, 20, 30, 40};
    const ad::sparse_gradient<double> more{ids, numbers.data(), 2};
    for (const bool whole : {false, true}) {
        ad::tape<double> on;
        const auto E = on.parameter(table);
        auto loss = ops::dot(ops::lookup(E, some_words()), filled<double, 3>({2, 2, 2}, 1.0));
        if (whole) loss = ops::add(loss, ops::dot(E, filled<double, 2>({6, 2}, 0.25)));
        on.backward(loss);
        ad::add_gradient_rows(E, more);
        CHECK((ad::gradient_rows(E).rows == nullptr) == whole);
        const double rest = whole ? 0.25 : 0;
        const double must[] = {1, 1, 11, 21, 0, 0, 0, 0, 2, 2, 30, 40};
        for (std::size_t i = 0; i < 12; ++i) CHECK(on.gradient(E).data[i] == must[i] + rest);
    }
}

TEST_CASE("rows outside the table are rejected")
{
    const auto table = random({6, 2}, 1);
    ad::tape<double> on;
    const auto E = on.parameter(table);
    const std::vector<double> numbers(4, 1.0);
    const auto says = [&](const std::vector<std::uint32_t>& ids, std::size_t width) {
        return support::message_of<shape_error>([&] {
            ad::set_gradient_rows(E, ad::sparse_gradient<double>{ids, numbers.data(), width});
        });
    };
    CHECK(says({1, 6}, 2) == "set_gradient_rows: 2 rows of 2 elements for a table [6,2]; they must have the table's "
                             "width, and ascending ids of its rows without duplicates");
    CHECK(says({1, 1}, 2) != "");
    CHECK(says({2, 1}, 2) != "");
    CHECK(says({1}, 3) != "");
    CHECK(says({1, 5}, 2) == "");

    const auto numbers_of_table = random({12}, 1);
    const auto flat = on.parameter(numbers_of_table);
    const auto fits = [&](std::uint32_t id, std::size_t width) {
        const std::vector<std::uint32_t> ids{id};
        return support::message_of<shape_error>([&] {
                   ad::set_gradient_rows(flat, ad::sparse_gradient<double>{ids, numbers.data(), width});
               }) == "";
    };
    CHECK(fits(5, 2));
    CHECK(fits(11, 1));
    CHECK_FALSE(fits(6, 2));
    CHECK_FALSE(fits(12, 1));
    CHECK_FALSE(fits(0, 0));
}
