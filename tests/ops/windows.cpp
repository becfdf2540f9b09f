// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/windows.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <limits>

using namespace heed;
using support::check_empty, support::message_of, support::random;

// Windows: values computed in scalar code, gradients by finite differences, errors by their messages.

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Windows of 3, 0 and 1 positions in rows of 5.
const window in_five{{1, 0, 4}, lengths{3, 0, 1}, 3};

}  // namespace

TEST_CASE("window_of, put_window and spread_window move a range of each row")
{
    const auto x = random({3, 5}, 1);
    const auto cut = ops::window_of(x, in_five);
    CHECK(support::same_bits(cut, array<double, 2>{{x(0, 1), x(0, 2), x(0, 3)}, {0.0, 0.0, 0.0}, {x(2, 4), 0.0, 0.0}}));
    auto put = x;
    put(0, 1) = 1, put(0, 2) = 2, put(0, 3) = 3, put(2, 4) = 7;
    const array<double, 2> w{{1.0, 2.0, 3.0},
                             {not_a_number, not_a_number, not_a_number},
                             {7.0, not_a_number, not_a_number}};  // values beyond the count are not read
    CHECK(support::same_bits(ops::put_window(x, w, in_five), put));
    array<double, 2> spread(shape_of_rank<2>{3, 5}, 0.0);
    spread(0, 1) = 1, spread(0, 2) = 2, spread(0, 3) = 3, spread(2, 4) = 7;
    CHECK(support::same_bits(ops::spread_window(w, in_five, 5u), spread));

    const auto wide = random({3, 5, 2}, 2);
    const auto cut_wide = ops::window_of(wide, in_five);
    CHECK(shape_of(cut_wide) == shape_of_rank<3>{3, 3, 2});
    CHECK(cut_wide(0, 2, 1) == wide(0, 3, 1));
    CHECK(cut_wide(2, 0, 0) == wide(2, 4, 0));
    CHECK(cut_wide(2, 1, 0) == 0);
    const auto back = ops::spread_window(cut_wide, in_five, 5u);
    CHECK(back(0, 3, 1) == wide(0, 3, 1));
    CHECK(back(0, 4, 1) == 0);
    CHECK(support::same_bits(ops::put_window(wide, cut_wide, in_five), wide));
    // A window wider than the row.
    const window wider{{0}, lengths{2}, 4};
    CHECK(support::same_bits(ops::window_of(array<double, 2>{{1.0, 2.0}}, wider),
                             array<double, 2>{{1.0, 2.0, 0.0, 0.0}}));
}

TEST_CASE("gradients of windows")
{
    const auto of = [](const auto& x) { return ops::window_of(x, in_five); };
    CHECK_GRADIENT(of, random({3, 5}, 1));
    CHECK_GRADIENT(of, random({3, 5, 2}, 2));
    const auto put = [](const auto& x, const auto& w) { return ops::put_window(x, w, in_five); };
    CHECK_GRADIENT(put, random({3, 5}, 3), random({3, 3}, 4));
    CHECK_GRADIENT(put, random({3, 5, 2}, 5), random({3, 3, 2}, 6));
    const auto spread = [](const auto& w) { return ops::spread_window(w, in_five, 5u); };
    CHECK_GRADIENT(spread, random({3, 3}, 7));
    CHECK_GRADIENT(spread, random({3, 3, 2}, 8));
    // The same tensor cut, changed and put back: the replacement gets the gradient, the replaced values get none.
    CHECK_GRADIENT([](const auto& x) { return ops::put_window(x, ops::tanh(ops::window_of(x, in_five)), in_five); },
                   random({3, 5}, 9));
    const window nowhere{{0, 0}, lengths{0, 0}, 0};
    check_empty([&](const auto& x) { return ops::window_of(x, nowhere); }, array<double, 2>(shape_of_rank<2>{2, 0}));
    check_empty([&](const auto& x) { return ops::window_of(x, nowhere); }, random({2, 3, 2}, 1));
    check_empty([&](const auto& w) { return ops::spread_window(w, nowhere, 3u); },
                array<double, 2>(shape_of_rank<2>{2, 0}));
    check_empty([&](const auto& x, const auto& w) { return ops::put_window(x, w, nowhere); }, random({2, 3}, 1),
                array<double, 2>(shape_of_rank<2>{2, 0}));
}

TEST_CASE("windows that do not fit are rejected")
{
    ad::tape<double> on;
    const auto both = [&](const auto& f, const auto&... x) {
        const auto plain = message_of<shape_error>([&] { (void)f(x...); });
        CHECK(plain == message_of<shape_error>([&] { (void)f(on.parameter(x)...); }));
        return plain;
    };
    const auto of = [](const auto& x) { return ops::window_of(x, in_five); };
    CHECK(both(of, random({2, 5}, 1)) == "window_of: 3 lengths for a batch of 2 rows; give one length per row");
    CHECK(both(of, random({3, 2}, 1)) == "window_of: the length of row 0 is 3 but there are only 2 positions");
    const window no_begin{{1, 0}, lengths{1, 1, 1}, 2}, behind{{4, 0, 0}, lengths{2, 1, 1}, 2},
        too_many{{0, 0, 0}, lengths{1, 1, 3}, 2};
    CHECK(both([&](const auto& x) { return ops::window_of(x, no_begin); }, random({3, 5}, 1)) ==
          "window: the list of first positions is [2] but must be [3] (one for each row, like the counts)");
    CHECK(
        both([&](const auto& x) { return ops::window_of(x, behind); }, random({3, 5}, 1)) ==
        "window_of: the window of row 0 has 2 positions from 4 on; it must be within 5 positions, and have at most 2");
    CHECK(
        both([&](const auto& w) { return ops::spread_window(w, behind, 5u); }, random({3, 2}, 1)) ==
        "window_of: the window of row 0 has 2 positions from 4 on; it must be within 5 positions, and have at most 2");
    CHECK(
        both([&](const auto& x, const auto& w) { return ops::put_window(x, w, too_many); }, random({3, 5}, 1),
             random({3, 2}, 2)) ==
        "window_of: the window of row 2 has 3 positions from 0 on; it must be within 5 positions, and have at most 2");
    const auto put = [](const auto& x, const auto& w) { return ops::put_window(x, w, in_five); };
    CHECK(both(put, random({3, 5}, 1), random({3, 2}, 1)) ==
          "put_window: the new window is [3,2] but must be [3,3] (the size of the window)");
    const auto spread = [](const auto& w) { return ops::spread_window(w, in_five, 5u); };
    CHECK(both(spread, random({3, 4}, 1)) ==
          "put_window: the new window is [3,4] but must be [3,3] (the size of the window)");
}
