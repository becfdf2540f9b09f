// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/ad.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/step.hpp>
#include <heed/normalize/local_p.hpp>
#include <heed/score/with_location.hpp>
#include <heed/score/with_neighbours.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace heed;
using support::check_empty, support::message_of, support::random;

// Masks, windows and Gaussians: values by hand or by a loop, gradients by differences, errors by their
// words.

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

boolean_mask<2> every_third_hidden(std::size_t rows, std::size_t positions)
{
    boolean_mask<2> mask(shape_of_rank<2>{rows, positions});
    for (std::size_t i = 0; i < rows * positions; ++i) mask[i] = i % 3 != 1;
    return mask;
}

/// Windows of 3, 0 and 1 positions in rows of 5.
const window in_five{{1, 0, 4}, lengths{3, 0, 1}, 3};

}  // namespace

TEST_CASE("hide selects: what is hidden is -inf, whatever it was, and gets no gradient")
{
    const boolean_mask<2> mask{array<bool, 2>{{true, false, true}, {false, true, false}}};
    const array<double, 2> e{{1.0, not_a_number, 3.0}, {infinity, 5.0, 6.0}};
    const auto y = ops::hide(e, mask);
    CHECK(support::same_bits(y, array<double, 2>{{1.0, -infinity, 3.0}, {-infinity, 5.0, -infinity}}));
    ad::tape<double> on;
    const auto taped = on.parameter(e);
    const auto hidden = ops::hide(taped, mask);
    CHECK(support::same_bits(hidden, y));
    on.backward(ops::inner(ops::softmax(hidden, lengths{3, 3}), support::uneven(e.shape())));
    const auto g = on.gradient(taped).data;
    for (const std::size_t i : {1u, 3u, 4u, 5u}) CHECK(g[i] == 0);  // the only one shown has weight 1
    CHECK(g[0] != 0);
    CHECK(g[0] == support::approx(-g[2]));

    const auto each = random({2, 3, 4}, 1);
    const auto of_each = ops::hide(each, mask);
    for (std::size_t i = 0; i < each.size(); ++i) {
        CHECK(of_each.data()[i] == (mask[i / 4] ? each.data()[i] : -infinity));
    }
    const auto f = [](std::size_t rows, std::size_t positions) {
        return [m = every_third_hidden(rows, positions)](const auto& x) { return ops::exp(ops::hide(x, m)); };
    };
    CHECK_GRADIENT(f(1, 1), random({1, 1}, 2));
    CHECK_GRADIENT(f(3, 5), random({3, 5}, 3));
    CHECK_GRADIENT(f(2, 4), random({2, 4, 3}, 4));
    check_empty(f(2, 0), array<double, 2>(shape_of_rank<2>{2, 0}));
    check_empty(f(2, 0), array<double, 3>(shape_of_rank<3>{2, 0, 3}));
    CHECK(message_of<shape_error>([&] {
              (void)ops::hide(random({2, 4}, 1), mask);
          }) ==
          "attention: the boolean mask is [2,3] but must be [2,4] (one truth value for each position, true = attend)");
    CHECK(message_of<shape_error>([&] { (void)ops::hide(on.parameter(e), every_third_hidden(1, 3)); }) ==
          "attention: the boolean mask is [1,3] but must be [2,3] (one truth value for each position, true = attend)");
}

TEST_CASE("add_mask adds, and hides where the mask is -inf")
{
    const array<double, 2> e{{1.0, not_a_number, 3.0}}, m{{0.5, -infinity, -2.0}};
    CHECK(support::same_bits(ops::add_mask(e, m), array<double, 2>{{1.5, -infinity, 1.0}}));
    const array<double, 3> each{{{1.0, 2.0}, {infinity, not_a_number}, {3.0, 4.0}}};
    CHECK(
        support::same_bits(ops::add_mask(each, m), array<double, 3>{{{1.5, 2.5}, {-infinity, -infinity}, {1.0, 2.0}}}));
    const auto f = [](const auto& x, const auto& mask) { return ops::exp(ops::add_mask(x, mask)); };
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1}, 2));
    CHECK_GRADIENT(f, random({3, 5}, 3), random({3, 5}, 4));
    CHECK_GRADIENT(f, random({2, 4, 3}, 5), random({2, 4}, 6));
    const auto with_some_hidden = [&m](const auto& x) { return ops::exp(ops::add_mask(x, m)); };
    CHECK_GRADIENT(with_some_hidden, random({1, 3}, 7));
    CHECK_GRADIENT(with_some_hidden, random({1, 3, 2}, 8));
    check_empty(f, array<double, 2>(shape_of_rank<2>{2, 0}), array<double, 2>(shape_of_rank<2>{2, 0}));

    ad::tape<double> on;  // no gradient comes to what hides, nor to what it hides
    const auto scores = on.parameter(e), mask = on.parameter(m);
    on.backward(ops::inner(ops::exp(ops::add_mask(scores, mask)), array<double, 2>{{2.0, 3.0, 5.0}}));
    for (const auto& x : {scores, mask}) {
        CHECK(on.gradient(x).data[0] == support::approx(2 * std::exp(1.5)));
        CHECK(on.gradient(x).data[1] == 0);
        CHECK(on.gradient(x).data[2] == support::approx(5 * std::exp(1.0)));
    }
    CHECK(message_of<shape_error>([&] {
              (void)ops::add_mask(random({2, 4}, 1), m);
          }) == "attention: the additive mask is [1,3] but must be [2,4] (one number for each position)");
    CHECK(message_of<shape_error>([&] {
              (void)ops::add_mask(on.parameter(e), random({1, 2}, 1));
          }) == "attention: the additive mask is [1,2] but must be [1,3] (one number for each position)");
}

TEST_CASE("clear_hidden selects zeros")
{
    const auto mask = every_third_hidden(2, 3);
    auto x = random({2, 3, 2}, 1);
    x(0, 1, 0) = not_a_number;
    x(1, 1, 1) = infinity;
    const auto y = ops::clear_hidden(x, mask);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(y.data()[i] == (mask[i / 2] ? x.data()[i] : 0));
    ad::tape<double> on;
    const auto taped = on.parameter(x);
    on.backward(ops::inner(ops::clear_hidden(taped, mask), support::uneven(x.shape())));
    CHECK(on.gradient(taped).data[2] == 0);
    CHECK(on.gradient(taped).data[4] == support::uneven(x.shape()).data()[4]);
    const auto f = [](std::size_t rows, std::size_t positions) {
        return [m = every_third_hidden(rows, positions)](const auto& v) { return ops::clear_hidden(v, m); };
    };
    CHECK_GRADIENT(f(1, 1), random({1, 1, 1}, 2));
    CHECK_GRADIENT(f(3, 5), random({3, 5, 2}, 3));
    check_empty(f(2, 0), array<double, 3>(shape_of_rank<3>{2, 0, 3}));
    CHECK(message_of<shape_error>([&] {
              (void)ops::clear_hidden(random({2, 4, 1}, 1), mask);
          }) == "attention::on: the boolean mask is [2,3] but must be [2,4] (one truth value for each position, true = "
                "attend)");
    CHECK(message_of<shape_error>([&] { (void)ops::clear_hidden(on.parameter(x), every_third_hidden(2, 2)); }) ==
          "attention::on: the boolean mask is [2,2] but must be [2,3] (one truth value for each position, true = "
          "attend)");
}

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

TEST_CASE("window_of, put_window and spread_window move a stretch of each row")
{
    const auto x = random({3, 5}, 1);
    const auto cut = ops::window_of(x, in_five);
    CHECK(support::same_bits(cut, array<double, 2>{{x(0, 1), x(0, 2), x(0, 3)}, {0.0, 0.0, 0.0}, {x(2, 4), 0.0, 0.0}}));
    auto put = x;
    put(0, 1) = 1, put(0, 2) = 2, put(0, 3) = 3, put(2, 4) = 7;
    const array<double, 2> w{{1.0, 2.0, 3.0},
                             {not_a_number, not_a_number, not_a_number},
                             {7.0, not_a_number, not_a_number}};  // what is behind the count is not read
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
    // The same tensor cut, changed and put back: what replaces it gets the gradient, what is replaced gets none.
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

TEST_CASE("windows that do not fit are refused")
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
          "window: the list of first positions is [2] but must be [3] (one for each row, as of the counts)");
    CHECK(
        both([&](const auto& x) { return ops::window_of(x, behind); }, random({3, 5}, 1)) ==
        "window_of: the window of row 0 has 2 positions from 4 on; it must lie within 5 positions, and have at most 2");
    CHECK(
        both([&](const auto& w) { return ops::spread_window(w, behind, 5u); }, random({3, 2}, 1)) ==
        "window_of: the window of row 0 has 2 positions from 4 on; it must lie within 5 positions, and have at most 2");
    CHECK(
        both([&](const auto& x, const auto& w) { return ops::put_window(x, w, too_many); }, random({3, 5}, 1),
             random({3, 2}, 2)) ==
        "window_of: the window of row 2 has 3 positions from 0 on; it must lie within 5 positions, and have at most 2");
    const auto put = [](const auto& x, const auto& w) { return ops::put_window(x, w, in_five); };
    CHECK(both(put, random({3, 5}, 1), random({3, 2}, 1)) ==
          "put_window: what is put is [3,2] but must be [3,3] (as wide as the window)");
    const auto spread = [](const auto& w) { return ops::spread_window(w, in_five, 5u); };
    CHECK(both(spread, random({3, 4}, 1)) ==
          "put_window: what is put is [3,4] but must be [3,3] (as wide as the window)");
}

TEST_CASE("neighbourhood and convolve")
{
    const auto near = [](const auto& x) { return ops::neighbourhood(x, std::size_t{1}); };
    CHECK(near(array<double, 2>{{1.0, 2.0, 3.0}}) ==
          array<double, 3>{{{0.0, 1.0, 2.0}, {1.0, 2.0, 3.0}, {2.0, 3.0, 0.0}}});
    CHECK(ops::neighbourhood(array<double, 2>{{5.0}}, std::size_t{2}) == array<double, 3>{{{0.0, 0.0, 5.0, 0.0, 0.0}}});
    CHECK(ops::neighbourhood(array<double, 2>{{5.0, 6.0}}, std::size_t{0}) == array<double, 3>{{{5.0}, {6.0}}});
    CHECK_GRADIENT(near, random({2, 5}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::neighbourhood(x, std::size_t{4}); }, random({2, 3}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::neighbourhood(x, std::size_t{2}); }, random({1, 1}, 1));

    // Convolving is a product with the neighbourhood, of any width, wider than the sentence too.
    const auto slide = [](const auto& x, const auto& F) { return ops::convolve(x, F); };
    for (const std::size_t reach : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{20}}) {
        const auto x = random({2, 7}, 1), F = random({3, 2 * reach + 1}, 2);
        array<double, 2> columns(shape_of_rank<2>{2 * reach + 1, 3});
        for (std::size_t n = 0; n < 3; ++n) {
            for (std::size_t i = 0; i < 2 * reach + 1; ++i) columns(i, n) = F(n, i);
        }
        CHECK(support::distance(slide(x, F), ops::linear(ops::neighbourhood(x, reach), columns)) < 1e-14);
    }
    CHECK(slide(array<double, 2>{{0.0, 1.0, 0.0}}, array<double, 2>{{1.0, 2.0, 3.0}}) ==
          array<double, 3>{{{3.0}, {2.0}, {1.0}}});
    CHECK_GRADIENT(slide, random({2, 5}, 1), random({3, 3}, 2));
    CHECK_GRADIENT(slide, random({2, 2}, 1), random({1, 7}, 2));
    CHECK_GRADIENT(slide, random({1, 1}, 1), random({1, 1}, 2));
    CHECK(slide(random({2, 0}, 1), random({3, 5}, 2)).size() == 0);
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                slide(random({2, 5}, 1), random({3, 4}, 2));
                            }),
                            "convolve: the filters are [3,4], but their width must be odd"));
}

TEST_CASE("place_in_row")
{
    const auto z = random({4, 5}, 1);
    const auto v = random({5}, 2);
    const lengths real{7, 0, 1, 30};
    const auto p = ops::place_in_row(z, v, real);
    for (std::size_t b = 0; b < 4; ++b) {
        double a = 0;
        for (std::size_t k = 0; k < 5; ++k) a += z(b, k) * v(k);
        CHECK(p(b) == doctest::Approx(static_cast<double>(real[b]) / (1 + std::exp(-a))).epsilon(1e-14));
    }
    const auto f = [](const lengths& n) {
        return [n](const auto& x, const auto& w) { return ops::place_in_row(x, w, n); };
    };
    CHECK_GRADIENT(f({3}), random({1, 1}, 3), random({1}, 4));
    CHECK_GRADIENT(f(real), z, v);
    check_empty(f(lengths{}), random({0, 3}, 1), random({3}, 2));
    check_empty(f({2, 3}), random({2, 0}, 1), random({0}, 2));
    CHECK(message_of<shape_error>([&] { (void)f(real)(z, random({4}, 1)); }) ==
          "place_in_row: v is [4] but must be [5] (as long as the rows of z [4,5])");
    ad::tape<double> on;
    CHECK(message_of<shape_error>([&] {
              (void)f({1, 2})(on.parameter(z), v);
          }) == "place_in_row: z is [4,5] but there are 2 sentences; give one row for each sentence");
}

TEST_CASE("gaussian")
{
    const std::vector<std::size_t> begin{2, 0};
    const auto x = random({2, 3, 2}, 1);
    const array<double, 1> p{3.2, 0.0};
    const auto y = ops::gaussian(x, p, begin, 1.5);
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t j = 0; j < 3; ++j) {
            const double off = static_cast<double>(begin[b] + j) - p(b), factor = std::exp(-off * off / 4.5);
            for (std::size_t n = 0; n < 2; ++n)
                CHECK(y(b, j, n) == doctest::Approx(x(b, j, n) * factor).epsilon(1e-14));
        }
    }
    const auto f = [&begin](const auto& w, const auto& c) { return ops::gaussian(w, c, begin, 0.8); };
    CHECK_GRADIENT(f, random({2, 5}, 2), random({2}, 3));
    CHECK_GRADIENT(f, random({2, 3, 4}, 4), random({2}, 5));
    CHECK_GRADIENT([](const auto& w, const auto& c) { return ops::gaussian(w, c, std::vector<std::size_t>{1}, 2.0); },
                   random({1, 1}, 6), random({1}, 7));
    check_empty(f, random({2, 0}, 1), random({2}, 2));
    check_empty(f, random({2, 0, 3}, 1), random({2}, 2));
    CHECK(message_of<shape_error>([&] {
              (void)f(random({2, 5}, 2), random({3}, 1));
          }) == "gaussian: the centre is [3] but must be [2] (one for each row of the weights [2,5])");
    ad::tape<double> on;
    const auto three = random({3, 5}, 2);
    CHECK(message_of<shape_error>([&] { (void)f(on.parameter(three), random({3}, 1)); }) ==
          "gaussian: the list of first positions is [2] but must be [3] (one for each row)");
}

TEST_CASE("divide_by_sum")
{
    const array<double, 2> x{{1.0, 3.0, 0.0}, {0.0, 0.0, 0.0}};
    CHECK(support::same_bits(ops::divide_by_sum(x), array<double, 2>{{0.25, 0.75, 0.0}, {0.0, 0.0, 0.0}}));
    const array<double, 3> each{{{1.0, 0.0}, {3.0, 0.0}}};
    CHECK(support::same_bits(ops::divide_by_sum(each), array<double, 3>{{{0.25, 0.0}, {0.75, 0.0}}}));
    const auto f = [](const auto& v) { return ops::divide_by_sum(v); };
    CHECK_GRADIENT(f, ops::square(random({1, 1}, 1)));
    CHECK_GRADIENT(f, ops::square(random({3, 5}, 2)));
    CHECK_GRADIENT(f, ops::square(random({2, 4, 3}, 3)));
    check_empty(f, random({2, 0}, 1));
    check_empty(f, random({2, 0, 3}, 1));
    ad::tape<double> on;  // nothing to divide has no gradient
    const auto nothing = on.parameter(x);
    on.backward(ops::inner(f(nothing), support::uneven(x.shape())));
    for (std::size_t i = 3; i < 6; ++i) CHECK(on.gradient(nothing).data[i] == 0);
}
